"""Options that several commands share, in groups. An option that was not given is ``None`` or ``False``."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from shoal.cli.terminal import (
    Json,
    MaybeWhole,
    Names,
    Separator,
    Types,
    all_types,
    declared_types,
    names,
    pairs,
    split_by,
    telling,
)
from shoal.cli.words import hierarchies, level, number, promise_word
from shoal.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from shoal.release.base import Job
    from shoal.release.wishes import Wishes

Flag = Annotated[bool, Parameter(negative=())]
# every other wish is called like its option
SPELLED = {"weights": "--weight", "losses": "--loss", "tune": "--goal-k", "promises": "--promise"}
ELSEWHERE = ("output", "table", "replace", "dry_run", "original")  # what a job need not know


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ByPolicy:
    """A policy.

    Parameters
    ----------
    policy
        A policy file; its view says what is shown and promised. --k, --l and --t may make it stronger, never weaker.
    view
        Which view of the policy; needed if several promise something.
    """

    policy: str | None = None
    view: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns are, without a policy.

    Parameters
    ----------
    quasi
        Columns an outsider may know.
    hierarchy
        How a quasi column becomes less precise: `zip=prefix:5`, `country=countries.csv`, `age=range:0:120`,
        `category=path:/`, `place=grid:100:1000`.
    sensitive
        Columns an outsider must not learn; shown unchanged.
    plain
        Further columns to show unchanged. A column that is not declared is left out.
    subject
        The column that says whose row it is: people are counted, not rows.
    weight
        What a column's detail is worth: `age=2`. Of curves, in the certainty penalty: `W0=2`.
    loss
        How the loss of a column of numbers is measured: `income=rank` (share of rows inside an interval), `=log`, or
        `=linear`. By itself it is rank where tails are heavy, else linear.
    at_most
        The highest level that a column may be published at: `zip=2`; `sex=0` is never generalized. Rows that no group
        can hold within it are withheld.
    """

    quasi: Names = None
    hierarchy: Names = None
    sensitive: Names = None
    plain: Names = None
    subject: str | None = None
    weight: Names = None
    loss: Names = None
    at_most: Names = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Promised:
    """What must hold.

    Parameters
    ----------
    k
        Every released combination is shared by at least k people.
    l
        Every group has at least l different values of each sensitive column. Of curves: no sensitive value stands in
        more than 1/l of those with one envelope and pattern.
    t
        Every group's sensitive values are spread like the whole table's, within t.
    p
        Of curves: at least p of the k under one envelope share their pattern.
    promise
        A further promise by its name and parameters: `beta-likeness:beta=1:column=diag`, `k-map:k=5`,
        `alpha-k-anonymity:alpha=.5:k=5:column=diag:values=[HIV]`, `delta-presence:most=.4`; or one of a plug-in.
    register
        For `k-map` and `delta-presence`: a table with the quasi columns and a row per person of the population.
    """

    k: MaybeWhole = None
    l: float | None = None
    t: float | None = None
    p: MaybeWhole = None
    promise: Names = None
    register: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OfCurves:
    """Curves instead of rows.

    Parameters
    ----------
    series
        The table holds curves: a row each, a column per instant (or long, with --time and --value).
    id
        Of curves: the column that names them; never released.
    time
        Of a long table of curves: the column of the instants.
    value
        Of a long table of curves: the column of the values; several (`kwh,gas`) make a panel. Without --time: a column
        of lists, a curve in each row.
    every
        Of a long table of curves: make instants this far apart, for example 1h (or 5, of numbers); values between two
        are averaged, or as `--set aggregate=sum` says. `--set zone=Europe/Berlin`: days and hours of this time zone.
    missing
        Of curves: what to do where an instant is missing: error (the default), drop, previous, interpolate,
        stretch (of curves of other lengths), zero.
    perturb
        Of curves with l: change sensitive numbers instead of merging or suppressing. It falsifies data; how many are
        altered stands in the report. `--set step=…` and `--set most=…` bound the change.
    compact
        Of curves: a row per group, its members' words and sensitive values in one cell; verify reads it, too.
    representatives
        Of curves: also write the mean curve of each P-subgroup to this file, with its size and spread. Queries get much
        better by it, and it tells more: who knows values of a curve finds P by the means, not k.
    """

    series: Flag = False
    id: Annotated[str | None, Parameter(name="--id")] = None
    time: str | None = None
    value: str | None = None
    every: str | None = None
    missing: str | None = None
    perturb: Flag = False
    compact: Flag = False
    representatives: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Growing:
    """A table that grows.

    Parameters
    ----------
    append
        Continuous mode: a state file. Each call takes one more chunk; what was published only becomes more general.
    publish
        In continuous mode: the whole table so far (the default), or only the new rows.
    save_model
        Also keep the model of the release in this sealed file, for rows that come later; needs a key. No value that was
        not published is in it.
    model
        The model of an earlier release: new rows that its published cells cover join its groups, within its promises.
    """

    append: str | None = None
    publish: Literal["whole", "new"] | None = None
    save_model: str | None = None
    model: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class How:
    """How it is made.

    Parameters
    ----------
    method
        How groups are found, for example `mondrian`; of curves `kapra`, `naive` or `banded`.
    effort
        How long a method may search: low, normal, high, or a number of steps.
    set_
        Another parameter of the method: `suppress=0.05`; for `local` also `interrupted=best`, so that Ctrl-C releases
        the best groups found so far. Of curves: `band=128`, and of their patterns `word=6`, `levels=5`,
        `pattern=seasonal`, `period=48`, or `pattern=auto`.
    seed
        The same seed gives the same release. Without it one is drawn in secret.
    keep_order
        Leave rows in the order of the input, which tells whose row is whose. A waiver: the report says so.
    waive
        Accept a risk that would be refused: `linked-rows`, `unique-plain`, `earlier-release`. The report says so.
    previous
        Earlier releases of the same people: who has them all must not learn more than is promised.
    memory
        Memory a table may take (2GB; by default half of what is free): a larger one is released in regions.
    engine
        `spark`: release files of a table or of curves on Spark (extra `spark`), here or where SPARK_MASTER says.
    """

    method: str | None = None
    effort: str | None = None
    set_: Annotated[Names, Parameter(name="--set")] = None
    seed: MaybeWhole = None
    keep_order: Flag = False
    waive: Names = None
    previous: Names = None
    memory: str | None = None
    engine: Literal["here", "spark"] | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class To:
    """Where the result goes.

    Parameters
    ----------
    output
        Where the release goes; by its name CSV, Parquet or NDJSON, or a table of a database
        (`postgresql://ana@host/clinic#release`). `-` (the default) is standard output.
    table
        Tables of databases whose addresses do not name one: of the data, then of the output.
    replace
        A table of a database may be replaced, if it exists. Who may read it may read the new one.
    report
        Also write a report: .html with pictures, .json or .txt.
    cells
        `text` (the default), `bounds` for two columns per number (`age_low`, `age_high`), or `struct` for typed cells
        in Parquet.
    dry_run
        Do everything, write nothing.
    json
        Print the report as JSON instead of text (on stderr, or on stdout if the data go elsewhere).
    """

    output: Annotated[str | None, Parameter(alias=("-o", "--into"), allow_leading_hyphen=True)] = None
    table: Names = None
    replace: Flag = False
    report: str | None = None
    cells: Literal["text", "struct", "bounds"] | None = None
    dry_run: Flag = False
    json: Json = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the data are read.

    Parameters
    ----------
    type_
        What a column holds, if it does not tell by itself: `birth=date:%d.%m.%Y`, `code=str`, `price=float:,` (a
        decimal comma), `at=datetime:ms` (since 1970). What is not of the type is counted and located, and nothing is
        released.
    separator
        The CSV separator, if it is not a comma.
    """

    type_: Types = None
    separator: Separator = None

    @property
    def split(self) -> str | None:
        """The separator as a character."""
        return split_by(self.separator)

    @property
    def types(self) -> dict[str, str]:
        """The declared types, by column."""
        return declared_types(self.type_)


def with_tables(data: str, to: To) -> tuple[str, To]:
    """The addresses of data and output with the tables that --table names; what can be known to be wrong is said."""
    from shoal.connect.sql import Address, is_address

    left = names(to.table)  # taken in the order of the addresses that lack one: the data first, then the output
    found = []
    for path in (data, to.output):
        lacking = path is not None and is_address(path) and "#" not in path
        found.append(f"{path}#{left.pop(0)}" if lacking and left else path)
    only_with(not left, "an address of a database that names no table", table=True)
    only_with(found[1] is not None and is_address(found[1]), "a database to write into", replace=to.replace)
    for path in found:
        if path is not None and is_address(path):
            Address.of(path)  # an address that is wrong is said before anything is read
    return str(found[0]), dataclasses.replace(to, output=found[1], table=None)


def read_for(job: Job, data: str, reading: Reading) -> pl.DataFrame:
    """The table a job works on, with the columns as declared; how a column was read is said."""
    by = "model" if hasattr(job, "model") else "policy"
    return read_table(data, reading, job.schema.columns, job.types, job.exact, by=by)


def read_table(
    data: str,
    reading: Reading,
    named: Collection[str],
    declared: Mapping[str, str] | None = None,
    exact: Collection[str] = (),
    *,
    by: str = "policy",
) -> pl.DataFrame:
    """A table with its columns as declared. How a column was read is said, of those that a person ``named``."""
    from shoal.connect import files
    from shoal.core.columns import require_columns

    types, tell = all_types(reading.types, declared or {}, by), telling({*named, *reading.types})
    frame = files.read(data, separator=reading.split, types=types, exact=exact, tell=tell)
    require_columns(list(reading.types), frame.columns, "--type")
    return frame


def wishes(*groups: Any, **more: Any) -> Wishes:
    """The wishes of a command, from its groups of options; errors name options as they are typed."""
    from shoal.release.wishes import Wishes

    # only the spelling is turned here: what a wish means, and whether it may be asked, is the Job's to say
    stated: dict[str, Any] = {}
    for group in groups:
        stated |= {f.name.rstrip("_"): getattr(group, f.name) for f in fields(group) if f.name not in ELSEWHERE}
    stated |= more
    for name in ("sensitive", "plain", "waive", "previous"):
        if stated.get(name) is not None:
            stated[name] = names(stated[name])
    if "hierarchy" in stated and "quasi" in stated:
        given = stated.pop("hierarchy")  # of one column of --quasi each: both together are one wish
        columns = names(stated["quasi"])
        fixed = next((word for word in ("model", "policy") if stated.get(word) is not None), None)
        if given and fixed and not columns:
            told = f"the {fixed} says which columns there are, and their hierarchies"
            raise UsageError(told, where="--hierarchy", hint="leave it out")
        stated["quasi"] = {**dict.fromkeys(columns), **hierarchies(given, columns)}
    if "weight" in stated:
        stated["weights"] = {n: number(v, "--weight") for n, v in pairs(stated.pop("weight"), "--weight").items()}
    if "loss" in stated:
        stated["losses"] = pairs(stated.pop("loss"), "--loss")
    if "at_most" in stated:
        stated["at_most"] = {n: level(v, "--at-most") for n, v in pairs(stated["at_most"], "--at-most").items()}
    if "," in (stated.get("value") or ""):
        stated["value"] = names([stated["value"]])
    if "promise" in stated:
        stated["promises"] = [promise_word(word) for word in stated.pop("promise") or ()]
    if stated.get("set") is not None:
        stated["set"] = _parsed(stated["set"])
    if stated.get("every") is not None and stated["every"].replace(".", "", 1).isdigit():
        stated["every"] = float(stated["every"])
    effort = stated.get("effort")
    if effort is not None and effort.isdigit():
        stated["effort"] = int(effort)
    return Wishes(stated, spell=spell)


def only_with(condition: bool, needs: str, **given: Any) -> None:
    """Refuse options that have no effect without another one; those not given are ``None`` or ``False``."""
    for name, value in given.items():
        if not condition and value is not None and value is not False:
            raise UsageError(
                f"has no effect without {needs}", where=spell(name), hint="leave it out, or give that, too"
            )


def spell(name: str) -> str:
    """A wish as its option is typed."""
    return SPELLED.get(name, "--" + name.replace("_", "-"))


def _parsed(words: list[str]) -> Mapping[str, Any]:
    import yaml

    return {name: yaml.safe_load(value) for name, value in pairs(words, "--set").items()}
