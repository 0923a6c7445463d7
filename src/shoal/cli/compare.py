"""``shoal compare``."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from shoal.cli.options import Columns, Reading, read_table, wishes
from shoal.cli.terminal import File, Json, Names, Whole, answer, as_json, names, progress, say
from shoal.core.errors import UsageError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a comparison shows besides loss and risk, and where.

    Parameters
    ----------
    learn
        A column that is not quasi: how often a model trained on each release is right about it (extra `learn`).
    sampling_weight
        The column that says how many people of the population a row stands for: also the risk among all of them.
    report
        Also draw loss against risk, and by column: .html with the table, or .svg with all pictures of that page.
    json
        Figures as JSON.
    """

    learn: str | None = None
    sampling_weight: str | None = None
    report: str | None = None
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Beside:
    """What every release must keep beside k.

    Parameters
    ----------
    l
        Every group has at least l different values of each sensitive column.
    t
        Every group's sensitive values are spread like the whole table's, within t.
    promise
        A further promise by its name and parameters: `beta-likeness:beta=1:column=diag`, `k-map:k=5`.
    register
        For `k-map` and `delta-presence`: a table with the quasi columns and a row per person of the population.
    """

    l: float | None = None
    t: float | None = None
    promise: Names = None
    register: str | None = None


def compare(
    data: File,
    *,
    columns: Columns = Columns(),
    methods: Names = None,
    k: Names = None,
    beside: Beside = Beside(),
    shown: Shown = Shown(),
    reading: Reading = Reading(),
    seed: Whole = 0,
) -> None:
    """Methods and parameters side by side: what each loses against the risk it leaves.

    Example: `shoal compare patients.csv --quasi zip,sex,age --methods local,mondrian --k 2,5 --report frontier.html`.

    Parameters
    ----------
    data
        A table.
    methods
        Which methods; all of them if not given.
    k
        Which k; 2, 5, 10 and 50 if not given.
    seed
        The same seed gives the same figures.
    """
    from shoal.connect import files
    from shoal.connect.formats import title_of
    from shoal.core.originals import keep_apart
    from shoal.release.columns import schema_of
    from shoal.release.compare import compare as run
    from shoal.release.promised import tightened
    from shoal.release.register import register_of

    asked, report, learn = wishes(columns, beside), shown.report, shown.learn
    if not columns.quasi:
        asked.refuse("quasi", "no quasi columns", "name the columns an outsider may know")
    if columns.plain:
        asked.refuse("plain", "has no effect on a comparison: plain columns lose nothing", "leave it out")
    if report is not None and not report.endswith((".html", ".svg")):
        raise UsageError("expected a name that ends in .html or .svg", where="--report")
    ks = [_whole(word) for word in names(k) or ["2", "5", "10", "50"]]
    schema = schema_of(asked)
    promises, _ = tightened((), schema, asked)
    register = register_of(asked, promises, schema)
    asked.done("a comparison")
    keep_apart([report], [data])
    more = [name for name in (learn, shown.sampling_weight) if name is not None]
    frame = read_table(data, reading, [*schema.columns, *more])
    with progress("comparing") as tell:
        found = run(
            frame,
            schema,
            methods=names(methods),
            ks=ks,
            promises=promises,
            seed=seed,
            learn=learn,
            register=register,
            weight=shown.sampling_weight,
            progress=tell,
        )
    if report is not None:
        title = f"Comparison of {title_of(data)}"
        files.write_text(found.page(title) if report.endswith(".html") else found.picture(title), report)
        say(f"report: {report}")
    answer(as_json(found) if shown.json else found.text())


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise UsageError("expected whole numbers", where="--k", hint="for example --k 2,5,10") from None
