"""Tables on disk that are read a few rows at a time, with the types that reading them whole would give."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from typing import cast as static_cast

import polars as pl

from shoal.connect.files import damaged, decoded, read_csv, read_ndjson
from shoal.connect.formats import format_of, parts_of
from shoal.connect.propose import Proposal, proposal
from shoal.connect.stack import stacked
from shoal.connect.types import Declared, Tell, cast, declarations, quiet
from shoal.core.errors import InputError, UsageError
from shoal.core.originals import register

LOOK = 1 << 20  # bytes of a file that tell how long its lines are
PIECE = 1 << 26  # bytes of a text file that are read together
MOST_TEXTS = 5_000_000  # distinct texts of a column whose type nobody declared
PACKED = 8  # times a compressed table grows, about


@dataclass(frozen=True)
class Scan:
    """A table on disk: its rows, lazily, how many there are, and how its files looked when it was opened.

    >>> Scan(pl.LazyFrame({"age": [30]}), 1, {}).check()  # no file, so none has changed
    """

    lazy: pl.LazyFrame
    height: int
    seen: Mapping[str, tuple[int, int, int]]

    def check(self) -> None:
        """Raise if a file is not the one that was opened, or was written to since."""
        for path, before in self.seen.items():
            if _stamp(path) != before:
                raise InputError(
                    "the file changed while it was read",
                    where=path,
                    hint="nothing was released; try again when nobody writes to it",
                )


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        raise InputError("there is no such file", where=path, hint="check the path") from None
    return found.st_ino, found.st_size, found.st_mtime_ns


def scan_parquet(path: str) -> Scan:
    """A Parquet file, or those of a folder or a pattern, as one table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     pl.DataFrame({"age": [30, 41]}).write_parquet(f"{folder}/t.parquet")
    ...     scan_parquet(f"{folder}/t.parquet").height
    2
    """
    parts = parts_of(path)
    for part in parts:
        register(part)
    seen = {part: _stamp(part) for part in parts}
    try:
        scans = [pl.scan_parquet(part) for part in parts]
        # types are compared before a row is read
        empty = stacked([scan.collect_schema().to_frame() for scan in scans], parts)
        lazy = pl.concat([scan.select(pl.col(n).cast(t) for n, t in empty.schema.items()) for scan in scans])
        height = int(lazy.select(pl.len()).collect(engine="streaming").item())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"cannot be read as parquet ({type(error).__name__})",
            where=path,
            hint="is the file whole, and of this format?",
        ) from None
    return Scan(lazy, height, seen)


def rows_about(parts: Sequence[str], separator: str | None = None) -> tuple[int, int]:
    """About how many rows and columns a table has, by a look at the beginning of its files.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("a,b\\n1,2\\n3,4\\n")
    ...     rows_about([f"{folder}/t.csv"])
    (3, 2)
    """
    rows = columns = 0
    for part in parts:
        if format_of(part) == "parquet":
            found = scan_parquet(part)
            rows, columns = rows + found.height, len(found.lazy.collect_schema())
            continue
        size = _stamp(part)[1]
        with Path(part).open("rb") as file:
            raw = file.read(LOOK)
        if raw[:2] == b"\x1f\x8b":
            try:
                # no more than a look: a few bytes may stand for very many
                raw, size = zlib.decompressobj(31).decompress(raw, LOOK), size * PACKED
            except zlib.error:
                raise damaged(part) from None
        lines = max(1, raw.count(b"\n"))
        rows += int(size * lines / max(1, len(raw)))
        first = raw.split(b"\n", 1)[0]
        columns = max(columns, first.count((separator or ",").encode()) + 1)
    return rows, columns


def scanned(
    path: str,
    folder: Path,
    separator: str | None = None,
    types: Mapping[str, str] | None = None,
    exact: Collection[str] = frozenset(),
    *,
    wanted: Collection[str] | None = None,
    tell: Tell = quiet,
) -> Scan:
    """A table as :func:`shoal.connect.files.read` reads it, a few rows at a time.

    What is not Parquet, or not of its declared types, is first written to ``folder``: only the ``wanted`` columns.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("age,name\\n30,F. Ott\\n")
    ...     scanned(f"{folder}/t.csv", Path(folder), wanted=["age"]).lazy.collect().rows()
    [(30, None)]
    """
    parts = parts_of(path)
    kind = format_of(parts[0])
    if separator is not None and kind != "csv":
        raise UsageError(f"{kind} has no separator", where="--separator", hint="leave it out")
    asked = declarations(types)
    if kind == "parquet" and not asked:
        return scan_parquet(path)
    seen = {part: _stamp(part) for part in parts}
    staging = folder / "read"
    staging.mkdir()
    made = _Staged(staging, asked, wanted, tell)
    for part in parts:
        register(part)
        if kind == "parquet":
            for rows in scan_parquet(part).lazy.collect_batches(chunk_size=1 << 19, engine="streaming"):
                made.add(rows, part)
        else:
            for piece, before in pieces(part, header=kind == "csv"):
                made.read(piece, part, before, kind, separator)
    source = made.typed(exact) if kind == "csv" else made.stacked()
    found = Scan(source, made.height, seen)
    # what was staged must be one state of the file
    found.check()
    return found


class _Staged:
    """Pieces of a table that were read and wait, as Parquet files, until the types of all are known."""

    def __init__(self, folder: Path, asked: Mapping[str, Declared], wanted: Collection[str] | None, tell: Tell) -> None:
        self.folder, self.asked, self.wanted, self.tell = folder, asked, wanted, tell
        self.height = 0
        self.files: list[Path] = []
        self.parts: list[str] = []

    def read(self, raw: bytes, part: str, before: int, kind: str, separator: str | None) -> None:
        """Read one piece as its format says; errors name the file and the line."""
        try:
            rows = read_csv(raw, part, separator, before) if kind == "csv" else read_ndjson(raw, part)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(
                f"cannot be read as {kind} ({type(error).__name__})",
                where=f"{part}, after line {before:,}",
                hint="is the file whole, and of this format?",
            ) from None
        self.add(rows, part)

    def add(self, rows: pl.DataFrame, part: str) -> None:
        """Keep some rows, their declared columns as declared."""
        chosen = rows.select(c for c in rows.columns if self.wanted is None or c in self.wanted)
        declared = {name: kind for name, kind in self.asked.items() if name in chosen.columns}
        self.files.append(self.folder / f"{len(self.files):06}.parquet")
        # columns nobody asked for are kept by name alone: the report says what was left out
        names = [c for c in rows.columns if c not in chosen.columns]
        self.parts.append(part)
        out = cast(chosen, declared, f"{part}, row {self.height + 1:,} and after", self.tell)
        out.with_columns(pl.lit(None).alias(n) for n in names).select(rows.columns).write_parquet(
            self.files[-1], compression="lz4"
        )
        self.height += rows.height

    def stacked(self) -> pl.LazyFrame:
        """All pieces with the types that fit all of them; a column of texts and numbers must be declared."""
        schemas = [pl.read_parquet_schema(file) for file in self.files]
        names = list(dict.fromkeys(name for schema in schemas for name in schema))
        types = {}
        for name in names:
            found = {schema[name] for schema in schemas if name in schema} - {pl.Null}
            if len(found) > 1 and not all(dtype.is_numeric() for dtype in found):
                raise InputError(
                    f"column {name!r} holds values of different kinds",
                    where=self.parts[0],
                    hint=f"declare what it holds: --type {name}=str",
                )
            # a column may be whole numbers in one piece and decimals in the next
            types[name] = pl.Float64 if any(d.is_float() for d in found) else next(iter(found), pl.Null)
        lazy = [
            pl.scan_parquet(file).select(
                (pl.col(n).cast(t) if n in schema else pl.lit(None, dtype=t)).alias(n) for n, t in types.items()
            )
            for file, schema in zip(self.files, schemas, strict=True)
        ]
        return pl.concat(lazy)

    def typed(self, exact: Collection[str]) -> pl.LazyFrame:
        """Text columns as the values they hold: recognised in the distinct texts of all pieces."""
        empty = stacked([pl.read_parquet(file, n_rows=0) for file in self.files], self.parts)
        lazy = pl.concat(
            [pl.scan_parquet(file).select(pl.col(n).cast(t) for n, t in empty.schema.items()) for file in self.files]
        )
        kinds: dict[str, Proposal] = {}
        for name, dtype in empty.schema.items():
            if dtype != pl.String or name in self.asked:
                continue
            texts = lazy.group_by(name).agg(pl.len().alias("\0rows")).collect(engine="streaming")
            if texts.height > MOST_TEXTS:
                raise InputError(
                    f"column {name!r} has more than {MOST_TEXTS:,} distinct texts: what they are cannot be recognised",
                    where=self.parts[0],
                    hint=f"declare its type, for example --type {name}=str",
                )
            found = proposal(texts[name], texts["\0rows"], exact=name in exact)
            if found.words is not None:
                self.tell(name, found.words)
            if found.kind is not None:
                kinds[name] = found
        if not kinds:
            return lazy
        for file in self.files:
            rows = pl.read_parquet(file)
            rows.with_columns(
                found.apply(rows[n].cast(pl.String)).alias(n) for n, found in kinds.items()
            ).write_parquet(file, compression="lz4")
        return pl.scan_parquet(self.files)


def pieces(path: str, *, header: bool) -> Iterator[tuple[bytes, int]]:
    """A text file in pieces that end with a line, each with the header of the file, and how many lines come before.

    A line end inside quotes is no end of a row: a piece is cut where an even number of quotes stands before.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("a\\n1\\n2\\n")
    ...     list(pieces(f"{folder}/t.csv", header=True))
    [(b'a\\n1\\n2\\n', 0)]
    """
    with _opened(path) as file:
        first, rest, lines = b"", b"", 0
        while True:
            try:
                read = file.read(PIECE)
            except (OSError, EOFError, zlib.error):
                raise damaged(path) from None
            raw = rest + read
            if not first and header:
                end = raw.find(b"\n") + 1
                first, raw = (raw[:end], raw[end:]) if end else (raw, b"")
                # without the mark that some programs put before UTF-8
                first = first.removeprefix(b"\xef\xbb\xbf")
            stop = _end(raw, header) if read else len(raw)
            if stop or not read:
                piece, rest = raw[:stop], raw[stop:]
                if piece.strip() or (not read and not lines):
                    whole = decoded(first + piece, path, lines)
                    if not whole.strip():
                        raise InputError("the file is empty", where=path, hint="expected a header line and rows")
                    yield whole, lines
                lines += piece.count(b"\n")
            else:
                rest = raw
            if not read:
                return


def _end(raw: bytes, quoted: bool) -> int:
    """Where the last whole row of a piece ends."""
    at = len(raw)
    while (at := raw.rfind(b"\n", 0, at)) >= 0:
        if not quoted or raw.count(b'"', 0, at) % 2 == 0:
            return at + 1
    return 0


def _opened(path: str) -> IO[bytes]:
    with Path(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return static_cast(IO[bytes], gzip.open(path)) if packed else Path(path).open("rb")
