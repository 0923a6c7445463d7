"""The judge of a released file: by a policy's view or by options, with the same rules as for a job.

Apart from jobs, because who judges a release needs none of the methods that make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal.core.schema import Column, Schema, one_role_each
from shoal.promises.base import Promise, those_about
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.columns import schema_of
from shoal.release.judge import Judge
from shoal.release.promised import promised_view, tightened
from shoal.release.register import register_of
from shoal.release.wishes import Wishes
from shoal.views.role_view import RoleView

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def judge_of(wishes: Wishes) -> Judge:
    """The judge of a released file: by a policy's view or by options, with the same rules as for a job.

    >>> judge_of(Wishes({"quasi": ["age"], "k": 5})).promises
    (KAnonymity(k=5),)
    """
    if not wishes.has("policy"):
        judge = judge_of_options(wishes)
        wishes.done("this verdict")
        return judge
    policy, chosen, view, promises, _ = promised_view(wishes)
    subject = policy.schema.subject
    judge = Judge(
        policy.schema,
        promises,
        # people can be counted only where the release shows whose row it is; else rows are
        subject if subject is not None and subject not in view.hides else None,
        view,
        hidden=frozenset(view.hides),
        register=register_of(wishes, promises, policy.schema, view),
        beside=told_apart(chosen.method, policy.schema, promises, policy.schema.columns, view),
    )
    wishes.done("a verdict by a policy", "the policy says what the columns are: leave the option out")
    return judge


def told_apart(
    method: Any, schema: Schema, promises: Sequence[Promise], columns: Iterable[str], view: RoleView | None = None
) -> tuple[str, ...]:
    """Which of these columns, if shown, groups are kept over beside the quasi ones: of a stream that is held, the time.

    >>> from shoal.promises.k_anonymity import KAnonymity
    >>> from shoal.streams.batches import Batches
    >>> schema = Schema({"at": Column("time"), "age": Column("quasi")})
    >>> told_apart(Batches(), schema, [KAnonymity(2)], ["at", "age"])
    ('at',)
    """
    judged = getattr(method, "judged", None)  # of tables a time is a plain column, which the adversary looks at
    if judged is None or those_about(promises, "curves") or those_about(promises, "events"):
        return ()
    shown = [name for name in columns if view is None or name not in view.hides]
    return tuple(name for name in judged(schema, shown) if name not in schema.quasi)


def at_their_times(released: pl.DataFrame, events: pl.DataFrame, positions: Ints, schema: Schema) -> pl.DataFrame:
    """What a stream released, with the times of its events for whoever judges it, also where the role sees none.

    ``positions`` are the events of the rows; what was invented (-1) stands behind the event it stands by.

    >>> import numpy as np
    >>> import polars as pl
    >>> events = pl.DataFrame({"at": [5, 6, 7], "site": ["x", "y", "x"]})
    >>> schema = Schema({"at": Column("time"), "site": Column("quasi")})
    >>> at_their_times(events[["site"]][[1, 2]], events, np.array([1, 2]), schema)["at"].to_list()
    [6, 7]
    """
    import polars as pl

    rows = pl.Series(positions).replace(-1, None).forward_fill()
    return released.with_columns(
        events[name].gather(rows) for name in schema.of("time") if name not in released.columns
    )


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
        one_role_each({"quasi": instants or (), "sensitive": schema.sensitive}, "verify")
        promises, _ = tightened(promised, schema, wishes)
        return Judge(schema, promises, instants=None if instants is None else tuple(instants))
    if wishes.has("z"):
        return _judge_of_stream(wishes)
    subject = wishes.take("subject")
    schema = _judged(wishes)
    if not schema.quasi:
        wishes.refuse("quasi", "no quasi columns", "name them, or give a policy")
    if subject is not None:
        one_role_each({"quasi": schema.quasi, "sensitive": schema.sensitive, "subject": [subject]}, "verify")
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
    roles = {"quasi": given.columns, "subject": [subject], "time": [time]}
    one_role_each({wishes.spelled(role): names for role, names in roles.items()}, "verify")
    columns = {**given.columns, subject: Column("subject"), time: Column("time", unit=unit)}
    return Judge(Schema(columns), (ZAnonymity(z, window),))
