"""All that is open in one run of the studio, and how files come into it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import polars as pl

from shoal.connect import files
from shoal.connect.formats import file_of, format_of
from shoal.connect.sql.address import Address, is_address
from shoal.core.errors import InputError, ShoalError, UsageError
from shoal.datasets.hospital import hospital
from shoal.datasets.series import sales_curves
from shoal.datasets.streams import stream
from shoal.report.chart.svg import clean
from shoal.web.project import Project

MOST_OPEN = 12
EXAMPLES = {
    "patients": ("A table", "2,000 invented patients: who they are, where they live, what they have."),
    "visits": ("A stream", "One day of visits to web sites, as a provider sees them."),
    "sales": ("Curves", "What 300 shops sold in 52 weeks."),
}


class TooLargeError(ShoalError):
    """An upload beyond what this run takes."""


class Studio:
    """The open projects of one person."""

    def __init__(self, folder: Path, *, largest: int) -> None:
        self.folder, self.largest = folder, largest
        self.projects: dict[str, Project] = {}

    def project(self, id: str) -> Project:  # noqa: A002 - it is one
        """An open project."""
        if id not in self.projects:
            raise ShoalError("this is not open any more", where="studio", hint="open the file again")
        return self.projects[id]

    def open(self, source: str, name: str, *, shown_as: str | None = None) -> Project:
        """Open a file, or a table of a database; its reading begins."""
        project = Project(clean(name), source, self.folder, shown_as=shown_as)
        if len(self.projects) >= MOST_OPEN:
            raise UsageError(f"{MOST_OPEN} files are open", where="studio", hint="close one first")
        self.projects[project.id] = project
        project.load()
        return project

    def open_table(self, address: str) -> Project:
        """Open a table of a database by its address, where no password may stand."""
        shown = Address.of(address.strip()).shown
        return self.open(address.strip(), shown)

    def close(self, id: str) -> None:  # noqa: A002
        """Forget a project and wipe its files."""
        project = self.projects.pop(id, None)
        if project is None:
            return
        for task in project.tasks.values():
            task.cancel()
        place = Path(file_of(project.source))
        if not is_address(project.source) and place.parent == self.folder:
            place.unlink(missing_ok=True)
        for made in self.folder.glob(f"{id}-*"):
            made.unlink(missing_ok=True)

    def example(self, name: str) -> Project:
        """Open bundled data that never were a person."""
        if name not in EXAMPLES:
            raise UsageError("there is no such example", where="studio", hint=f"one of: {', '.join(EXAMPLES)}")
        frame = _example(name)
        path = self.folder / f"{secrets.token_hex(8)}.csv"
        files.write(frame, str(path))
        return self.open(str(path), f"{name}.csv")

    async def receive(self, name: str, declared: int | None, body: AsyncIterator[bytes], *, text: bool = False) -> Path:
        """Take an upload into the private folder, under a name of our own; what is too large is refused at once.

        ``text``: it is no table, and its name need not say of which format it is.
        """
        ending = "".join(Path(name.replace("\\", "/")).suffixes[-2:]).lower()
        kind = "text" if text else _format(ending, name)
        if declared is not None and declared > self.largest:
            raise self._too_large(name)
        place = self.folder / f"{secrets.token_hex(8)}{_ending(ending)}"
        size = 0
        try:
            with place.open("xb") as out:
                place.chmod(0o600)
                async for piece in body:
                    size += len(piece)
                    if size > self.largest:
                        raise self._too_large(name)
                    out.write(piece)
            if not size:
                raise InputError("the file is empty", where=clean(name), hint=f"expected a {kind} file with rows")
        except OSError as error:
            place.unlink(missing_ok=True)
            raise InputError(
                f"cannot be kept ({error.strerror})", where=clean(name), hint="is the disk full?"
            ) from None
        except BaseException:
            place.unlink(missing_ok=True)
            raise
        return place

    def _too_large(self, name: str) -> TooLargeError:
        return TooLargeError(
            f"the file is larger than {self.largest / 2**20:,.0f} MB",
            where=clean(name),
            hint="open it where it lies, without a copy: shoal studio FILE; or start with --largest",
        )


def _format(ending: str, name: str) -> str:
    """What a file is by its ending; an error names the file as its owner does."""
    try:
        return format_of(f"upload{_ending(ending)}")
    except ShoalError as error:
        raise UsageError(error.message, where=clean(name), hint=error.hint) from None


def _ending(text: str) -> str:
    """The part of a name's endings that says what a file is."""
    parts = [part for part in text.split(".") if part]
    kept = parts[-2:] if parts and parts[-1] == "gz" else parts[-1:]
    return "".join(f".{part}" for part in kept if part.isalnum())


def _example(name: str) -> pl.DataFrame:
    if name == "patients":
        return hospital(2_000, seed=1)
    if name == "sales":
        return sales_curves(300, 52, seed=1)
    return stream("domains", scale=0.01, seed=1, hours=(0, 24)).rename({"subject": "client", "value": "site"})
