"""A table on disk that does not fit in memory: counted, cut, solved region by region, judged, and written.

Rows are read from disk a few times and never all at once. Between the passes they lie in a private folder beside the
release, which is removed whatever happens, unless the process is killed (SIGKILL). The release takes its place only
when every bucket of it was judged.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from shoal.connect import files
from shoal.connect.pieces import with_texts, write_pieces
from shoal.core.bounds import bounded
from shoal.core.domain import Domain
from shoal.core.errors import OutputError
from shoal.core.order import publication_order
from shoal.core.release import Release
from shoal.core.schema import Column, Schema
from shoal.core.table import Table, code, coded
from shoal.promises.rules import least_people
from shoal.release.adversary import Adversary
from shoal.release.judge import Judge
from shoal.release.regional import figures, survey
from shoal.release.regional.choose import PRIVATE
from shoal.release.regional.judging import Court, Judged, added
from shoal.release.regional.parting import is_alike, parted
from shoal.release.regional.plan import (
    BUCKET,
    PERSON,
    Plan,
    Solved,
    regions_of,
    sensitive_levels,
    solve,
    solve_alike,
)
from shoal.release.regional.prepared import Prepared, as_it_is
from shoal.release.regional.sample import Sampler
from shoal.release.regional.scattered import Room, Scattered, in_order
from shoal.release.remarks import unmet
from shoal.release.table import TableJob
from shoal.report.columns import masked as with_masks
from shoal.tables.base import Progress, reachable, silent
from shoal.tables.improve import draws
from shoal.tables.regions import Regions

NO_ROOM = ("No space left", "os error 28")
IN_PIECES = "the table was released in {} regions, each by itself, and judged as a whole"
IN_ONE = "the table was released in one region"


@contextmanager
def private_folder(beside: Path) -> Iterator[Path]:
    """A folder that only its owner can look into, and that is gone afterwards.

    >>> with private_folder(Path(tempfile.gettempdir())) as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=PRIVATE, dir=beside))
    except OSError as error:
        raise OutputError(
            f"cannot be written ({error.strerror})", where=str(beside), hint="does the folder exist?"
        ) from None
    try:
        yield folder
    except (OSError, pl.exceptions.PolarsError) as error:
        if (isinstance(error, OSError) and error.errno == 28) or any(words in str(error) for words in NO_ROOM):
            raise OutputError(
                "there is no room left on the disk",
                where=str(beside),
                hint="beside the release, about three times the table is needed while it is made; nothing was written",
            ) from None
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Run:
    """One release of a table on disk."""

    job: TableJob
    rows: Prepared
    folder: Path
    room: Room
    progress: Progress = silent

    def made(self) -> tuple[list[Path], Release]:
        """The release as files in their order, and what is known of it; nothing of it is written elsewhere yet."""
        start = time.perf_counter()
        schema = self.rows.schema
        self.progress(0.0, f"counting values of {self.rows.height:,} rows")
        domain = survey.domain_of(self.rows.scan, schema)
        # a table without rows has the levels of all values: what is asked of it costs no pass over the data
        table = code(self.rows.empty, schema, domain=domain)
        known = {name: domain.known(name) for name in schema.quasi}
        doubtful = unmet(known, self.job.promises, domain.values)
        sampler, frequency, withheld = self._counted(domain, schema)
        kept = self.rows.height - sum(withheld.values())
        k = least_people(self.job.promises)
        if not kept:
            reachable(table, self.job.promises)  # says how near nobody comes
        seed = self.job.draw()
        plan = Plan(
            schema=schema,
            promises=self.job.promises,
            method=self.job.method_for(kept),
            domain=domain,
            regions=self._regions(sampler, domain, table, kept, k),
            frequency=frequency,
            seed=seed,
            # rows that read alike must be judged together, whichever regions they come from: a bucket fits in memory
            buckets=-(-kept // self.room.most) or 1,
            typed=self.job.cells == "struct",
        )
        regions = self._scattered(plan)
        parts = parted(plan, regions, self.room, k)
        plan.parts = len(parts)
        solved, buckets = self._solved(plan, regions, parts)
        pieces, judged, court, unread = self._judged(plan, buckets)
        verdict = court.verdict(judged)
        adversary = Adversary(schema, self.job.promises, self.job.view, self.job.waived)
        looks = survey.OnDisk(pl.scan_parquet(pieces), None if schema.subject is None else PERSON)
        # whether an outsider can know a column hangs on its values: one that no one can know in a bucket links nothing
        readable = [n for n in adversary.beside(self.rows.empty.select(looks.columns)) if n not in unread]
        self.progress(0.9, "looking for what links rows")
        found = figures.look_for_links(adversary, looks, readable)
        made = figures.Made(
            self.rows.given,
            verdict.rows,
            dict(withheld),
            [(s.loss, s.bits) for s in solved],
            added([s.before for s in solved]),
            judged,
        )
        notes = [
            *self.job.told_before(),
            *([IN_PIECES.format(f"{len(parts):,}"), figures.UNMEASURED] if len(parts) > 1 else [IN_ONE]),
            *self.rows.notes,
            *court.shared(judged),
            *figures.combined_names(adversary, looks, readable),
            *doubtful,
        ]
        report = figures.report(plan, made, [*verdict.findings, *found], self.job.title, notes)
        columns = with_masks(figures.published(plan, looks, report.loss), self.job.mask_names())
        report = msgspec.structs.replace(
            report,
            seed=self.job.seed,
            left_out=[c for c in self.rows.columns if c not in self.job.schema.columns],
            columns=columns,
            seconds=time.perf_counter() - start,
        )
        release = Release(
            data=None,
            withheld=dict(report.withheld),
            schema=schema,
            left_out=list(report.left_out),
            report=report,
            notes=list(report.notes),
            warnings=doubtful,
        )
        # last: whose the rows are is taken away only when nothing more is asked about people
        for piece in pieces:
            self._show(piece, court, plan)
        return pieces, release

    def _counted(self, domain: Domain, schema: Schema) -> tuple[Sampler, dict[str, np.ndarray], Counter[str]]:
        sampler = Sampler(self.rows.height)
        frequency = {n: np.zeros(len(domain.compiled[n][0].values)) for n in schema.quasi}
        withheld: Counter[str] = Counter()
        seen = 0
        for batch in survey.batches(self.rows.scan, schema.quasi, region=self.room.most):
            matrix, lost, reasons = coded(batch, schema, domain)
            withheld.update(reasons)
            matrix = matrix[~lost] if lost.any() else matrix
            sampler.count(matrix)
            for j, name in enumerate(schema.quasi):
                frequency[name] += np.bincount(matrix[:, j], minlength=len(frequency[name]))
            seen += batch.height
            self.progress(0.08 * seen / max(1, self.rows.height), f"coding {seen:,} of {self.rows.height:,} rows")
        self.rows.check()  # every pass must have read the same file, or codes and regions would not fit
        return sampler, frequency, withheld

    def _regions(self, sampler: Sampler, domain: Domain, table: Table, kept: int, k: int) -> Regions:
        """Where to cut, by a second look at quasi values; a table that is one region needs none."""
        seen = 0
        scan = self.rows.scan if kept > self.room.most else self.rows.empty.lazy()
        for batch in survey.batches(scan, table.names, region=self.room.most):
            matrix, lost, _ = coded(batch, self.rows.schema, domain)
            sampler.take(matrix[~lost] if lost.any() else matrix)
            seen += batch.height
            word = f"looking where to cut {seen:,} of {self.rows.height:,} rows"
            self.progress(0.08 + 0.02 * seen / max(1, self.rows.height), word)
        self.rows.check()
        return regions_of(sampler.sample(), table, self.room.most, kept, k)

    def _scattered(self, plan: Plan) -> Scattered:
        """The rows on disk by region, without those that cannot be released."""
        out = Scattered(self.folder / "regions", self.room.held)
        seen = 0
        for batch in survey.batches(self.rows.scan, region=self.room.most):
            matrix, lost, _ = coded(batch, plan.schema, plan.domain)
            region = pl.Series(BUCKET, plan.regions.of(matrix))
            tagged = batch.with_columns(region)
            out.add(BUCKET, tagged.filter(pl.Series(~lost)) if lost.any() else tagged)
            seen += batch.height
            word = f"parting {seen:,} of {self.rows.height:,} rows into {plan.regions.count:,} regions"
            self.progress(0.1 + 0.1 * seen / max(1, self.rows.height), word)
        out.flush()
        self.rows.check()
        return out

    def _solved(self, plan: Plan, rows: Scattered, parts: list[list[int]]) -> tuple[list[Solved], Scattered]:
        buckets = Scattered(self.folder / "buckets", self.room.held)
        solved = list[Solved]()
        at_once = self.room.together(max(map(rows.height, parts)))
        alike = {number for number, part in enumerate(parts) if is_alike(plan, rows, part, self.room.most)}

        def work(number: int) -> Iterable[Solved]:
            if number in alike:
                return self._as_they_are(plan, rows, parts[number])
            # the bar is drawn by one thread: only a region that is worked on alone tells how far it is
            alone = number == 0 or at_once == 1
            tell = _within(self.progress, *self._word(number, rows, parts)) if alone else silent
            return [solve(plan, number, rows.take(parts[number]), tell, categories=True)]

        for number, found in enumerate(in_order(work, len(parts), at_once)):
            share, _, word = self._word(number, rows, parts)
            self.progress(share, word)
            for one in found:
                buckets.add(BUCKET, one.rows)
                solved.append(dataclasses.replace(one, rows=pl.DataFrame()))  # they are on disk now
        buckets.flush()
        return solved, buckets

    def _as_they_are(self, plan: Plan, rows: Scattered, part: list[int]) -> Iterator[Solved]:
        """A region of rows that are all alike, some at a time."""
        subject = plan.schema.subject
        people = rows.height(part) if subject is None else survey.people_of(rows.scan(part), subject)
        for batch in rows.batches(part[0], self.room.most):
            yield dataclasses.replace(solve_alike(plan, batch, categories=True), before={people: 1} if people else {})
            people = 0  # they are counted once

    @staticmethod
    def _word(number: int, rows: Scattered, parts: list[list[int]]) -> tuple[float, float, str]:
        """Where a region stands among all, how much of the work it is, and what to say of it."""
        word = f"region {number + 1:,} of {len(parts):,}, {rows.height(parts[number]):,} rows"
        return 0.2 + 0.6 * number / len(parts), 0.6 / len(parts), word

    def _judged(self, plan: Plan, buckets: Scattered) -> tuple[list[Path], list[Judged], Court, set[str]]:
        """Each bucket judged as it would be published, in an order that tells nothing; and columns no one can know."""
        schema = plan.schema
        full = sorted(buckets.rows)
        compared = [p.sensitive for p in plan.promises if p.compares_with_all and p.sensitive is not None]
        scan = buckets.scan(full)
        person = None if schema.subject is None else PERSON
        whole = {n: (plan.domain.values[n], survey.shares_of(scan, n, plan.domain.values[n], person)) for n in compared}
        court = Court(Judge(schema, plan.promises), sensitive_levels(plan), whole)
        adversary = Adversary(schema, self.job.promises, self.job.view)
        pieces, judged, unread = list[Path](), list[Judged](), set[str]()
        role = "" if self.job.view is None else self.job.view.role
        place = self.folder / "ordered"
        place.mkdir()
        at_once = self.room.together(max(buckets.rows.values()))

        def work(number: int) -> tuple[Judged, set[str], Path]:
            bucket = full[number]
            rows = buckets.take([bucket])
            found = court.bucket(rows)
            strange = {n for n in adversary.beside(rows) if n != PERSON and not adversary.readable(rows, n)}
            # one bucket is drawn like a table in memory, so that both give the same file
            seed = plan.seed if plan.buckets == 1 else int(draws(plan.seed, 0x0DE4 + bucket, 1)[0] >> np.uint64(1))
            order = publication_order(rows.drop(PERSON, strict=False), seed, role)
            piece = place / f"{number:06}.parquet"
            rows[order].write_parquet(piece, compression="lz4", statistics=False)
            return found, strange, piece

        for number, (found, strange, piece) in enumerate(in_order(work, len(full), at_once)):
            judged.append(found)
            unread |= strange
            pieces.append(piece)
            self.progress(0.8 + 0.1 * number / len(full), f"verifying part {number + 1:,} of {len(full):,}")
        return pieces, judged, court, unread

    def _show(self, piece: Path, court: Court, plan: Plan) -> None:
        """A part as it leaves: without whose its rows are, with the hidden columns in their places."""
        if self.job.cells == "text" and self.rows.finish is as_it_is and plan.schema.subject is None:
            return  # it is as it leaves
        rows = with_texts(pl.read_parquet(piece))
        shown, parts = rows.drop(PERSON, strict=False), dict[str, tuple[str, ...]]()
        if self.job.cells == "bounds":
            # equal cells have equal bounds; but two cells may have the same, so they are judged as they would be read
            numbers = [n for n in plan.schema.quasi if plan.domain.values[n].dtype.is_numeric()]
            shown, parts = bounded(shown, numbers)
            columns: dict[str, Column] = {}
            for name, column in plan.schema.columns.items():
                columns |= {part: Column("quasi") for part in parts[name]} if name in parts else {name: column}
            people = [rows[PERSON]] if PERSON in rows.columns else []
            bucket = dataclasses.replace(court, judge=Judge(Schema(columns), plan.promises)).bucket(
                shown.with_columns(people)
            )
            court.verdict([bucket])
        self.rows.finish(shown, parts).write_parquet(piece, compression="lz4")


def _within(progress: Progress, start: float, width: float, word: str) -> Progress:
    """The progress of one region as a part of all."""
    return lambda share, what: progress(start + width * share, f"{word}: {what}")


def release_files(
    job: TableJob,
    rows: Prepared,
    target: str,
    folder: Path,
    room: Room,
    *,
    separator: str = ",",
    progress: Progress = silent,
) -> Release:
    """Release a table on disk into a file: verified, then written, then put in its place; or nothing at all.

    ``room`` says what may be in memory at once; between its passes rows lie in ``folder``.
    """
    pieces, release = Run(job, rows, folder, room, progress).made()
    progress(0.95, f"writing {release.report.released:,} rows")
    if len(pieces) == 1:
        files.write(with_texts(pl.read_parquet(pieces[0])), target, separator=separator)
    elif target == "-":
        write_pieces(pieces, str(folder / "all"), separator=separator, kind="csv")
        with (folder / "all").open("rb") as whole:
            shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
    else:
        write_pieces(pieces, target, separator=separator)
    return release
