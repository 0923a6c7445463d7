"""Jobs and judges from options alone, without a policy; and the parts that both roads share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from shoal.connect.files import read_released
from shoal.core.errors import UsageError
from shoal.core.frames import from_any
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.hierarchy.tree import Tree
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.document import WAIVERS
from shoal.promises.base import Promise
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.adversary import EARLIER_RELEASE
from shoal.release.base import Job
from shoal.release.chunks import ChunksJob
from shoal.release.curves import CurvesJob, about_curves
from shoal.release.judge import Judge
from shoal.release.methods import method_of, series_words, with_effort
from shoal.release.promised import tightened
from shoal.release.register import register_of
from shoal.release.stream import StreamJob
from shoal.release.table import TableJob
from shoal.release.wishes import Wishes
from shoal.report.model import ending
from shoal.series.representatives import FEWEST
from shoal.streams.z_anonymity import ZAnon
from shoal.tables import TABLE_METHODS
from shoal.views.role_view import RoleView

OF_STREAMS = "a stream leaves in the order of its decisions"
OF_CHUNKS = "a growing table is not laid beside releases of others"
OF_CURVES = "curves leave by their groups"
READING = ("id", "time", "value", "every", "aggregate", "zone", "missing", "pattern", "perturb", "instants")


class Common(NamedTuple):
    """What every job has, whatever it makes.

    >>> Common.of(Wishes({"seed": 3}), "release").seed
    3
    """

    title: str
    keys: KeyRing
    seed: int | None
    keep_order: bool
    waived: tuple[str, ...]

    @classmethod
    def of(cls, wishes: Wishes, title: str, waived: tuple[str, ...] = ()) -> Common:
        """Take it from the wishes; ``waived`` are the risks that a policy accepts."""
        # read from the environment only if nobody handed one in: a caller's ring must not be mixed with the machine's
        ring = wishes.take("keys")
        names = (*waived, *wishes.take("waive", ()))
        unknown = [n for n in names if n not in WAIVERS]
        if unknown:
            wishes.refuse("waive", f"there is no risk called {unknown[0]!r}", f"one of: {', '.join(WAIVERS)}")
        return cls(
            str(wishes.take("title", title)),
            KeyRing.load() if ring is None else ring,
            wishes.take("seed"),
            bool(wishes.take("keep_order", False)) or "order" in names,
            tuple(dict.fromkeys(names)),
        )


def reported(wishes: Wishes, more: dict[str, Any]) -> dict[str, Any]:
    """The job has a report; the name of its file must say which kind.

    >>> reported(Wishes({"report": "r.html"}), {"title": "release"})
    {'title': 'release'}
    """
    ending(wishes.take("report"))
    return more


def earlier_releases(wishes: Wishes, schema: Schema) -> tuple[tuple[str, pl.DataFrame], ...]:
    """Earlier releases of the same people: files or frames, one or several."""
    given = wishes.take("previous", ())
    many = list(given) if isinstance(given, list | tuple) else [given]
    found = []
    for number, one in enumerate(many, 1):
        # by the name of the file alone: its folder would stand in the report
        if isinstance(one, str | os.PathLike):
            found.append((Path(one).name, read_released(str(one), schema.quasi)))
        else:
            found.append((f"earlier release {number}", from_any(one)[0]))
    return tuple(found)


def saved_model(
    wishes: Wishes, schema: Schema, promises: Sequence[Promise], view: RoleView | None = None
) -> Path | None:
    """Where the model of the release is to be kept, if new rows can be read as it reads them."""
    path = wishes.take("save_model")
    if path is None:
        return None
    if (view is not None and view.masks) or any(column.derive is not None for column in schema.columns.values()):
        wishes.refuse(
            "save_model", "a model takes rows as they come, without masks and derived columns", "leave it out"
        )
    _refuse_later_rows(wishes, "save_model", promises)
    return Path(path)


def _refuse_later_rows(wishes: Wishes, name: str, promises: Sequence[Promise]) -> None:
    if any(p.follows_people for p in promises):
        why = "later rows would change what the rows of their people tell together"
        wishes.refuse(name, why, "leave it out, and release the whole table anew")


def nothing_to_waive(
    wishes: Wishes, more: dict[str, Any], why: str, *, order: bool = False, but: Sequence[str] = ()
) -> None:
    """Refuse waivers that would change nothing; with ``order``, keeping the order of the input is one that does.

    ``but`` are those that change something here.
    """
    if more["keep_order"] and not order:
        wishes.refuse("keep_order", why, "leave it out")
    if [name for name in more["waived"] if name not in ("order", *but)]:
        wishes.refuse("waive", f"has no effect: {why}", "leave it out")


def of_options(wishes: Wishes) -> Job:
    """The job that options describe.

    >>> of_options(Wishes({"quasi": ["age"], "k": 3})).promises
    (KAnonymity(k=3),)
    """
    if wishes.has("view"):
        wishes.refuse("view", "views are defined in a policy", "give the policy, too")
    if wishes.has("series"):
        return _curves_of_options(wishes)
    if wishes.has("z") or wishes.has("window"):
        return _stream_of_options(wishes)
    schema = schema_of(wishes)
    promises, _ = tightened((), schema, wishes)
    if not promises:
        raise UsageError("no promise was asked for", where="anonymize", hint="give k, for example k=5")
    if not schema.quasi:
        raise UsageError("no quasi column is declared", where="anonymize", hint="name what an outsider may know")
    append = wishes.take("append")
    common = Common.of(wishes, "release")
    more: dict[str, Any] = {
        **common._asdict(),
        "promises": promises,
        "schema": schema,
        "exact": tuple(schema.of("plain")),
    }
    if append is not None:
        _refuse_later_rows(wishes, "append", promises)
        if any(schema[name].loss is not None for name in schema.quasi):
            wishes.refuse(
                "losses", "has no effect on a growing table, whose rows are not all there yet", "leave it out"
            )
        if EARLIER_RELEASE in more["waived"]:
            wishes.refuse("waive", f"has no effect: {OF_CHUNKS}", "leave it out")
        chosen = method_of(wishes, (TABLE_METHODS,), None, default=None)
        return ChunksJob(
            state=Path(append),
            method=None if chosen is None else with_effort(chosen, wishes),
            publish=wishes.one_of("publish", "whole", "new"),  # type: ignore[arg-type]
            **more,
        )
    method = with_effort(method_of(wishes, (TABLE_METHODS,), None), wishes)
    cells = wishes.one_of("cells", "text", "struct", "bounds")
    return TableJob(
        method=method,
        cells=cells,
        previous=earlier_releases(wishes, schema),
        register=register_of(wishes, promises, schema),
        save_model=saved_model(wishes, schema, promises),
        memory=wishes.take("memory"),
        engine=wishes.one_of("engine", "here", "spark"),
        **reported(wishes, more),
    )


def _curves_of_options(wishes: Wishes) -> CurvesJob:
    wishes.take("series")
    if not (wishes.has("k") and wishes.has("p")):
        wishes.refuse("series", "curves need k and p", "for example k=16 and p=6")
    promise = KPAnonymity(wishes.take("k"), wishes.take("p"))
    sensitive = wishes.take("sensitive", ())
    beside = list(sensitive) if isinstance(sensitive, Mapping) else sensitive
    promises, _ = tightened((promise,), Schema.build(quasi={}, sensitive=list(beside)), wishes)
    _, others = about_curves(promises)
    common = Common.of(wishes, "curves")
    nothing_to_waive(wishes, common._asdict(), OF_CURVES)
    reading = {**series_words(wishes, None, others=others), "sensitive": sensitive}
    reading |= {name: wishes.take(name) for name in READING if wishes.has(name)}
    if wishes.has("quasi"):
        reading["instants"] = _instants(wishes)
    if wishes.has("weights"):
        reading["weights"] = wishes.take("weights")
    more = {**common._asdict(), "promises": promises, "schema": Schema({})}
    return CurvesJob(
        reading=reading,
        compact=is_compact(wishes),
        cells=wishes.one_of("cells", "text", "struct"),
        representatives=with_means(wishes, promises),
        **reported(wishes, more),
    )


def is_compact(wishes: Wishes) -> bool:
    """Whether a row per group is asked for, whose cells are text.

    >>> is_compact(Wishes({"compact": True}))
    True
    """
    asked = bool(wishes.take("compact", False))
    if asked and wishes.has("cells"):
        wishes.refuse("cells", "a compact release has text cells", "leave it out")
    return asked


def with_means(wishes: Wishes, promises: tuple[Promise, ...]) -> bool:
    """Whether the mean of each P-subgroup is asked for, which needs a P that hides in it."""
    asked = bool(wishes.take("representatives", False))
    p = about_curves(promises)[0].p
    if asked and p < FEWEST:
        wishes.refuse("representatives", f"a mean of {p} curves tells each of them", f"promise p={FEWEST} or more")
    return asked


def _instants(wishes: Wishes) -> list[str]:
    """The columns of curves that an outsider may know are their instants."""
    quasi = wishes.take("quasi")
    if isinstance(quasi, Mapping) and any(h is not None for h in quasi.values()):
        wishes.refuse("hierarchy", "has no effect on curves: they are released under envelopes", "leave it out")
    return [quasi] if isinstance(quasi, str) else list(quasi)


def _stream_of_options(wishes: Wishes) -> StreamJob:
    z, window = wishes.take("z"), wishes.take("window")
    if z is None or window is None:
        raise UsageError("nothing is promised", where="stream", hint="give a policy, or z and a window")
    time, subject, value = (wishes.take(name, name) for name in ("time", "subject", "value"))
    if not isinstance(value, str):
        wishes.refuse("value", "a stream has one value per event", "name one column")
    given = wishes.take("hierarchy")
    unit, late = wishes.one_of("unit", "s", "ms", "us", "ns"), wishes.take("late", "0s")
    schema = Schema(
        {
            time: Column("time", unit=unit, late=late),  # type: ignore[arg-type]
            subject: Column("subject"),
            value: Column("quasi", hierarchy=None if given is None else as_hierarchy(given, "hierarchy")),
        }
    )
    for name in ("exact", "noise"):
        if given is None and wishes.has(name):
            wishes.refuse(name, "has no effect without a hierarchy", "say how values may be generalized")
    method = _z_method(wishes)
    common = Common.of(wishes, "stream")
    more = common._asdict()
    nothing_to_waive(wishes, reported(wishes, more), OF_STREAMS)
    return StreamJob(schema=schema, promises=(ZAnonymity(z, window),), method=method, **more)


def _z_method(wishes: Wishes) -> ZAnon:
    tune, noise = wishes.take("tune"), wishes.take("noise")
    how = {
        "use": "z-anonymity",
        "generalize": not wishes.take("exact", False),
        **({"tune": tune} if tune else {}),
        **({"noise": {"most": noise}, "allow_noise": True} if noise is not None else {}),
    }
    try:
        return msgspec.convert(how, ZAnon)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).partition(" - at")[0], where="stream") from None


def schema_of(wishes: Wishes) -> Schema:
    """A schema from the short forms: names, or a mapping of names to hierarchies.

    >>> schema_of(Wishes({"quasi": {"age": "range"}, "sensitive": "diag"})).quasi
    ['age']
    """
    schema = wishes.take("schema")
    if schema is not None:
        return schema  # type: ignore[no-any-return]
    quasi = wishes.take("quasi", ())
    named = quasi if isinstance(quasi, Mapping) else dict.fromkeys([quasi] if isinstance(quasi, str) else quasi)
    return Schema.build(
        quasi={name: as_hierarchy(value, f"column {name!r}") for name, value in named.items()},
        sensitive=list(wishes.take("sensitive", ())),
        plain=list(wishes.take("plain", ())),
        subject=wishes.take("subject"),
        weights=wishes.take("weights"),
        losses=wishes.take("losses"),
    )


def as_hierarchy(value: Hierarchy | str | Mapping[str, Any] | None, where: str) -> Hierarchy | None:
    """A hierarchy from a spec, a name, a mapping, or the path of a tree's file.

    >>> as_hierarchy({"use": "prefix", "length": 5}, "zip").use, as_hierarchy(None, "sex")
    ('prefix', None)
    """
    if value is None or isinstance(value, Hierarchy):
        return value
    known = isinstance(value, str) and value in HIERARCHIES.names()
    if isinstance(value, str) and not known and (value.endswith(".csv") or Path(value).is_file()):
        return Tree(file=value)
    return HIERARCHIES.decode(value, where)


def judge_of_options(wishes: Wishes) -> Judge:
    """The judge that options describe.

    >>> judge_of_options(Wishes({"quasi": ["age"], "k": 3})).quasi
    ['age']
    """
    if wishes.has("view"):
        wishes.refuse("view", "views are defined in a policy", "give the policy, too")
    if wishes.has("p"):
        if not wishes.has("k"):
            wishes.refuse("p", "curves need k and p", "for example k=16 and p=6")
        promised: tuple[Promise, ...] = (KPAnonymity(wishes.take("k"), wishes.take("p")),)
        instants = wishes.take("quasi")
        schema = _judged(wishes)
        promises, _ = tightened(promised, schema, wishes)
        return Judge(schema, promises, instants=None if instants is None else tuple(instants))
    if wishes.has("z"):
        return _judge_of_stream(wishes)
    subject = wishes.take("subject")
    schema = _judged(wishes)
    if not schema.quasi:
        wishes.refuse("quasi", "no quasi columns", "name them, or give a policy")
    promises, _ = tightened((), schema, wishes)
    return Judge(schema, promises, subject, register=register_of(wishes, promises, schema))


def _judged(wishes: Wishes) -> Schema:
    """The columns a verdict is about."""
    schema = wishes.take("schema")
    about = {name: wishes.take(name, ()) for name in ("quasi", "sensitive")}
    # beside a register, a hierarchy says which people a label may stand for
    declared = isinstance(about["quasi"], Mapping) and any(h is not None for h in about["quasi"].values())
    if declared and not wishes.has("register"):
        wishes.refuse("hierarchy", "has no effect: what reads alike is a group, however it was made", "leave it out")
    return schema if schema is not None else schema_of(Wishes(about))


def _judge_of_stream(wishes: Wishes) -> Judge:
    subject, z, window = wishes.take("subject"), wishes.take("z"), wishes.take("window")
    if window is None or subject is None:
        both = f"give {wishes.spelled('window')} and {wishes.spelled('subject')}"
        wishes.refuse("z", "z-anonymity needs a window and a subject", both)
    time, unit = wishes.take("time", "time"), wishes.take("unit", "s")
    given = schema_of(Wishes({"quasi": wishes.take("quasi", ())}))
    columns = {**given.columns, subject: Column("subject"), time: Column("time", unit=unit)}
    return Judge(Schema(columns), (ZAnonymity(z, window),))
