"""``shoal demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from shoal.cli.terminal import Whole, answer, progress, say


def demo(*, rows: Whole = 5000, out: Annotated[str, Parameter(alias="-o")] = "out", seed: Whole = 0) -> None:
    """A tour that needs nothing but this package: a hospital is invented, released, verified and reported on.

    Parameters
    ----------
    rows
        How many patients to invent.
    out
        A folder for what the tour writes.
    seed
        The same seed gives the same hospital.
    """
    from shoal.api import anonymize
    from shoal.connect import files
    from shoal.core.originals import Folder, keep_apart
    from shoal.datasets.hospital import hospital

    keep_apart([Folder(out, ("hospital.csv", "released.csv", "report.html"))], [])
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    patients = hospital(rows, seed=seed)
    columns: dict[str, Any] = {
        "zip": {"use": "prefix", "length": 5},
        "sex": "suppress",
        "age": "range",
        "ins_co": "suppress",
    }
    say(f"{rows:,} invented patients; an outsider may know their {', '.join(columns)}\n")
    with progress("anonymizing") as tell:
        release = anonymize(
            patients,
            quasi=columns,
            sensitive=["diag"],
            plain=["gluc", "hba1c", "med"],
            subject="pid",
            k=5,
            l=2,
            seed=seed,
            title="hospital",
            progress=tell,
        )
    answer(release.report.text())
    files.write(patients, str(folder / "hospital.csv"))
    files.write(release.data, str(folder / "released.csv"))
    release.report.write(folder / "report.html")
    answer(f"\nwritten: {folder / 'hospital.csv'}, {folder / 'released.csv'}, {folder / 'report.html'}")
    answer(f"try: shoal verify {folder / 'released.csv'} --quasi {','.join(columns)} --sensitive diag --k 5 --l 2")
    answer(f"     shoal attack {folder / 'released.csv'} {folder / 'hospital.csv'} --on {','.join(columns)}")
