"""One piece of work in the studio: a file or a table, what was chosen for it, and what came of it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from shoal.connect import files
from shoal.connect.formats import SHEET, file_of, format_of, title_of
from shoal.core.errors import InputError, ShoalError, UsageError
from shoal.core.release import Release
from shoal.policy.document import Policy
from shoal.policy.load import parse
from shoal.release.base import Job
from shoal.release.compare import Comparison, compare
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.views.derived import with_derived
from shoal.web.choices import VIEW, Choices, Kind, drafted
from shoal.web.summary import Summary, summarize
from shoal.web.work import Task, Tell

COMPARED = 10_000  # rows on which methods are compared: the picture is the same, and it is there at once
METHODS = ("local", "mondrian", "topdown", "forest", "microaggregation", "datafly")


class StaleError(ShoalError):
    """The page that was sent is older than what another page did."""


class Project:
    """A table and all that was chosen. ``source`` is a file, a sheet of one, or a table of a database.

    ``version`` grows with every change: a page sends back the one it showed.
    """

    def __init__(self, name: str, source: str, folder: Path, *, shown_as: str | None = None) -> None:
        self.id = secrets.token_urlsafe(9)
        self.name, self.source, self.folder = name, source, folder
        self.sheets: list[str] = []  # of a workbook with several
        self.command_name = shown_as or name  # how the command line would name the file
        self.separator: str | None = None
        self.version = 0
        self.frame: pl.DataFrame = pl.DataFrame()
        self.summaries: dict[str, Summary] = {}
        self.told: list[tuple[str, str]] = []
        self.choices: Choices | None = None
        self.release: Release | None = None
        self.released_as: str | None = None  # the policy that made it
        self.comparison: Comparison | None = None
        self.compared_as: str | None = None
        self.attacks: list[tuple[str, str]] = []
        self.tasks: dict[str, Task] = {}
        self.risk_asked: Any = None  # the columns of which the risk before was asked last
        self._typed: tuple[Any, pl.DataFrame] | None = None
        self._lock = threading.RLock()

    def start(self, name: str, work: Callable[[Tell], Any], then: Callable[[Any], None] | None = None) -> Task:
        """Begin a task; one of the same name that still runs is cancelled."""
        with self._lock:
            if name in self.tasks:
                self.tasks[name].cancel()
            self.tasks[name] = Task(name, work, then)
            return self.tasks[name]

    def load(self) -> Task:
        """Read the file, look at its columns, and guess what they are."""
        return self.start("load", self._load)

    def _load(self, tell: Tell) -> None:
        tell(0.05, "reading")
        self.separator = separator_of(Path(self.source))
        told: list[tuple[str, str]] = []
        frame = self._named(lambda: self._read(told))
        if not frame.height:
            raise InputError("the table has no rows", where=self.name, hint="expected a header line and rows")
        self.frame, self.told = frame, told
        self.summaries = summarize(frame, tell)
        tell(0.95, "guessing what the columns are")
        self.choices = drafted(frame, title_of(self.name))

    def _read(self, told: list[tuple[str, str]]) -> pl.DataFrame:
        if format_of(self.source) == "excel" and file_of(self.source) == self.source:
            from shoal.connect.excel import sheets_of

            found = sheets_of(self.source)
            if len(found) > 1:  # the first is opened; the page offers the others
                self.sheets = found
                self._take_sheet(found[0])
        return files.read(self.source, separator=self.separator, tell=lambda c, w: told.append((c, w)))

    def _take_sheet(self, name: str) -> None:
        self.source = f"{file_of(self.source)}{SHEET}{name}"
        self.command_name = f"{file_of(self.command_name)}{SHEET}{name}"

    def with_sheet(self, version: int, name: str) -> Task:
        """Read another sheet of the workbook: all that was chosen begins anew."""
        with self._lock:
            if name not in self.sheets:
                raise UsageError("the workbook has no such sheet", where=self.name, hint="choose one of the list")
            self.change(version, lambda c: c)
            self._take_sheet(name)
            self.choices = self.release = self.comparison = self._typed = self.risk_asked = None
            self.version, self.attacks = self.version + 1, []
            return self.load()

    def _named(self, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Errors name the file as its owner knows it."""
        try:
            return read()
        except ShoalError as error:
            error.where = (error.where or "").replace(file_of(self.source), self.name)
            raise

    @property
    def chosen(self) -> Choices:
        """What was chosen; there once the file is read."""
        if self.choices is None:
            raise ShoalError("the file is not read yet", where=self.name)
        return self.choices

    def change(self, version: int, make: Callable[[Choices], Choices]) -> None:
        """Change what was chosen, if nobody else did meanwhile."""
        with self._lock:
            if version != self.version:
                raise StaleError(
                    "this was changed in another tab", where=self.name, hint="look at it again, then change it"
                )
            made = make(self.chosen)
            if made != self.choices:
                self.choices, self.version = made, self.version + 1

    def as_kind(self, version: int, kind: Kind) -> None:
        """Read the table as something else: what was guessed is guessed anew."""
        self.change(version, lambda c: c if c.kind == kind else drafted(self.frame, c.dataset, kind))

    def policy(self) -> Policy:
        """The policy, read as the command line would read it."""
        return parse(self.chosen.policy(), "policy.yaml", self.folder)

    def job(self) -> Job:
        """What the command line would make of it."""
        return job_of(Wishes({"policy": self.policy(), "view": VIEW, "seed": self.chosen.settings.seed}))

    def rows_for(self, job: Job) -> pl.DataFrame:
        """The file with its columns as the policy declares them, as the command line reads it."""
        asked = (dict(job.types), tuple(job.exact))
        if self._typed is None or self._typed[0] != asked:
            read = lambda: files.read(self.source, separator=self.separator, types=job.types, exact=job.exact)  # noqa: E731
            self._typed = (asked, self._named(read))
        return self._typed[1]

    def run(self) -> Task:
        """Make the release, in a thread of its own."""
        job, text = self.job(), self.chosen.policy()

        def work(tell: Tell) -> Release:
            tell(0.02, "reading")
            frame = self.rows_for(job)
            return job.run(frame, progress=tell)

        def keep(made: Release) -> None:
            self.release, self.released_as, self.attacks = made, text, []

        return self.start("run", work, keep)

    def compare(self, ks: list[int], methods: list[str]) -> Task:
        """Methods side by side, on a sample of the rows."""
        job, text = self.job(), self.chosen.policy()
        beside = [p for p in job.promises if p.use != "k-anonymity"]

        def work(tell: Tell) -> Comparison:
            tell(0.02, "reading")
            frame = self.rows_for(job)
            part = frame if frame.height <= COMPARED else frame.sample(COMPARED, seed=0)
            rows = with_derived(part, job.schema)
            return compare(rows, job.schema, methods=methods, ks=ks, promises=beside, progress=tell)

        def keep(made: Comparison) -> None:
            self.comparison, self.compared_as = made, text

        return self.start("compare", work, keep)

    def written(self, ending: str) -> Path:
        """The release as a file, written as the command line writes it."""
        if self.release is None:
            raise ShoalError("nothing is released yet", where=self.name, hint="run it first")
        place = self.folder / f"{self.id}-released{ending}"
        files.write(self.release.data, str(place), separator=self.separator or ",")
        return place

    def command(self) -> str:
        """The line that makes the same release from the policy."""
        chosen = self.chosen.settings
        more = f" --separator {'TAB' if self.separator == chr(9) else quoted(self.separator)}" if self.separator else ""
        seed = f" --seed {chosen.seed}" if chosen.seed is not None else ""
        ending = {"parquet": ".parquet", "ndjson": ".ndjson"}.get(format_of(self.name), ".csv")
        return f"shoal anonymize {quoted(self.command_name)} --policy policy.yaml{seed}{more} -o released{ending}"

    def with_settings(self, version: int, **changed: Any) -> None:
        """Change promises or method."""
        self.change(
            version,
            lambda c: msgspec.structs.replace(c, settings=msgspec.structs.replace(c.settings, **changed)),
        )


def separator_of(path: Path) -> str | None:
    """The separator of a CSV file whose header has no comma.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = file.write_text("age;zip\\n30;10115\\n")
    >>> separator_of(file)
    ';'
    """
    if format_of(str(path)) != "csv" or path.suffix == ".gz" or ".tsv" in path.name:
        return None
    with path.open("rb") as lines:
        first = lines.readline(1 << 20).decode("utf-8", "replace")
    other = max(";\t|", key=first.count)
    return other if "," not in first and first.count(other) else None


def quoted(word: str | None) -> str:
    """A word as a shell reads it back.

    >>> quoted("a b.csv")
    "'a b.csv'"
    """
    import shlex

    return shlex.quote(word or "")
