"""A stream from options alone, without a policy."""

from __future__ import annotations

import msgspec

from shoal.core.errors import UsageError
from shoal.core.schema import Column, Schema, one_role_each
from shoal.promises.z_anonymity import ZAnonymity
from shoal.release.columns import as_hierarchy
from shoal.release.common import OF_STREAMS, Common, nothing_to_waive, reported
from shoal.release.stream import StreamJob
from shoal.release.wishes import Wishes
from shoal.streams.z_anonymity import ZAnon


def stream_of_options(wishes: Wishes) -> StreamJob:
    """The stream that options describe.

    >>> stream_of_options(Wishes({"z": 2, "window": "1h"})).promises[0].z
    2
    """
    z, window = wishes.take("z"), wishes.take("window")
    if z is None or window is None:
        raise UsageError("nothing is promised", where="stream", hint="give a policy, or z and a window")
    time, subject, value = (wishes.take(name, name) for name in ("time", "subject", "value"))
    if not isinstance(value, str):
        wishes.refuse("value", "a stream has one value per event", "name one column")
    roles = {"time": [time], "subject": [subject], "value": [value]}
    one_role_each({wishes.spelled(role): names for role, names in roles.items()}, "stream")
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
        # asking for it here says what a policy says by `allow_noise`
        **({"noise": {"most": noise}, "allow_noise": True} if noise is not None else {}),
    }
    try:
        return msgspec.convert(how, ZAnon)
    except msgspec.ValidationError as error:
        # the place that msgspec names is one in our mapping, not in what was typed
        raise UsageError(str(error).partition(" - at")[0], where="stream") from None
