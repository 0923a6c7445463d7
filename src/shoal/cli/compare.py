"""``shoal compare``."""

from __future__ import annotations

from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names, progress, say
from shoal.core.errors import UsageError


def compare(
    data: File,
    *,
    quasi: Names = None,
    hierarchy: Names = None,
    sensitive: Names = None,
    subject: str | None = None,
    methods: Names = None,
    k: Names = None,
    l: float | None = None,
    t: float | None = None,
    report: str | None = None,
    separator: Separator = None,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Methods and parameters side by side: what each loses against the risk it leaves.

    Example: `shoal compare patients.csv --quasi zip,sex,age --methods local,mondrian --k 2,5 --report frontier.html`.

    Parameters
    ----------
    data
        A table.
    quasi
        Columns an outsider may know.
    hierarchy
        How a quasi column becomes less precise: `zip=prefix:5`, `country=countries.csv`, `age=range`.
    sensitive
        Columns an outsider must not learn.
    subject
        The column that says whose row it is: people are counted, not rows.
    methods
        Which methods; all of them if not given.
    k
        Which k; 2, 5, 10 and 50 if not given.
    l
        Every group has at least l different values of each sensitive column.
    t
        Every group's sensitive values are spread like the whole table's, within t.
    report
        Also draw loss against risk: .html with the table, or .svg.
    separator
        The CSV separator, if it is not a comma.
    seed
        The same seed gives the same figures.
    json
        Figures as JSON.
    """
    from shoal.cli.anonymize import hierarchies
    from shoal.connect import files
    from shoal.release import table as api
    from shoal.release.compare import compare as run
    from shoal.report.chart import draw

    if not quasi:
        raise UsageError("no quasi columns", where="--quasi", hint="name the columns an outsider may know")
    if report is not None and not report.endswith((".html", ".svg")):
        raise UsageError("expected a name that ends in .html or .svg", where="--report")
    ks = [_whole(word) for word in names(k) or ["2", "5", "10", "50"]]
    frame = files.read(data, separator="\t" if separator == "TAB" else separator)
    schema = api.build_schema(
        dict.fromkeys(names(quasi)) | hierarchies(hierarchy, names(quasi)),
        sensitive=names(sensitive),
        subject=subject,
    )
    with progress("comparing") as tell:
        found = run(
            frame,
            schema,
            methods=names(methods),
            ks=ks,
            promises=api.short_promises(schema, l=l, t=t),
            seed=seed,
            progress=tell,
        )
    if report is not None:
        files.write_text(
            found.page(f"Comparison of {data}") if report.endswith(".html") else draw(found.chart()), report
        )
        say(f"report: {report}")
    answer(as_json(found) if json else found.text())


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise UsageError("expected whole numbers", where="--k", hint="for example --k 2,5,10") from None
