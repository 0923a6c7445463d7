"""z-anonymity: release at once what enough people showed lately, as precisely as that allows; withhold the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.said import meaning
from shoal.core.schema import Schema, refuse_limits
from shoal.core.time import Duration, EventTime, duration
from shoal.promises.base import Promise
from shoal.promises.z_anonymity import ZAnonymity
from shoal.streams.base import Batch, Outcomes, Running, StreamMethod
from shoal.streams.chains import Coder
from shoal.streams.known_values import UNKNOWN
from shoal.streams.noise import Faces, Noise
from shoal.streams.sliding import Decided
from shoal.streams.texts import Printer
from shoal.streams.tuning import Tune, ZHours
from shoal.streams.z_engine import ZEngine

SIZES = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


class Jitter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Up to ``jitter`` people more than z, drawn anew for every value in every ``period``, never fewer.

    Answers who sends events of invented people to find out whether the z-th was there: the threshold is not known.

    >>> ZAnon(threshold=Jitter(jitter=5)).threshold.period
    '1h'
    """

    jitter: int
    period: Duration = "1h"

    def __post_init__(self) -> None:
        if self.jitter < 1 or duration(self.period) <= 0:
            raise UsageError("`jitter` and `period` must be positive", where="threshold")


class ZAnon(StreamMethod, frozen=True, tag="z-anonymity"):
    """Every event is decided in the same call: released at the most specific level that z people showed, or withheld.

    **Protects against** being found by a rare value, at any moment of the stream.
    **Does not protect against** rare combinations of common values (``tune`` aims at that, ``shoal plan`` computes it),
    against an attacker who controls z - 1 people, or who watches the moment a value begins to appear (``sticky`` and
    ``threshold`` make that harder), nor against timing.

    **How.** All levels of the value's chain are counted (distinct people in the closed window [t - window, t], over
    keyed fingerprints); the first level with at least z is released (Bacconi 2021, Algorithm 2; Jha et al. 2020).

    **Cost.** O(levels) hash probes per event; memory grows with the events of one window and with nothing else.

    Options: ``withheld`` drops a withheld event or publishes it ``blank``; ``generalize: false`` releases exact values
    only; ``tune`` and ``noise`` as their classes say (noise needs ``allow_noise: true``, because with it fewer than z
    real people may stand behind a value). ``sticky``: within a session (until a person has not shown a value for one
    window) a value is never released more precisely than before, so a repeated visit does not show the moment the
    z-th person came. ``floors`` raises z in parts of the week. ``witnesses`` people must agree before the clock jumps
    further ahead than the time column allows. ``memory`` is a ceiling: beyond it events are withheld.

    >>> from shoal.streams.z_stream import z_anonymity
    >>> stream = z_anonymity(z=2, window="1h", hierarchy="path")
    >>> [stream.push(t, who, what) for t, who, what in ((0, "ada", "a.x"), (1, "bob", "a.y"), (2, "eve", "a.y"))]
    [None, 'a', 'a.y']

    Reference: Jha, Favale, Vassio, Trevisan, Mellia, "z-anonymity: Zero-Delay Anonymization for Data Streams", IEEE
    Big Data 2020; Bacconi, "Privacy enforcing framework in high dimensional data streams", Politecnico di Torino 2021.
    """

    withheld: Literal["drop", "blank"] = "drop"
    generalize: bool = True
    tune: Tune | None = None
    noise: Noise | None = None
    allow_noise: bool = False
    sticky: bool = False
    threshold: Jitter | None = None
    floors: tuple[ZHours, ...] = ()
    witnesses: int = 2
    memory: str = "1GB"
    longest: int = 4096

    groups: ClassVar[bool] = False
    meets: ClassVar[Literal["value", "neighbours", "everyone"]] = "value"

    @property
    def invents(self) -> bool:
        """See :class:`StreamMethod`."""
        return self.noise is not None

    def waits_for(self, promises: Sequence[Promise]) -> tuple[int, int]:
        """See :class:`StreamMethod`: the window."""
        return 0, max((one.micros for one in promises if one.about == "events"), default=0)  # type: ignore[attr-defined]

    @property
    def replayable(self) -> bool:
        """See :class:`StreamMethod`: plain z-anonymity counts what came in, not what went out."""
        return self.tune is None and self.noise is None and not self.sticky

    def __post_init__(self) -> None:
        if self.noise is not None and not self.allow_noise:
            raise UsageError(
                "with noise, fewer than z real people may stand behind a value",
                where="z-anonymity.noise",
                hint="say `allow_noise: true` if that is meant",
            )
        if self.allow_noise and self.noise is None:
            raise UsageError(
                "`allow_noise` has no effect without `noise`",
                where="z-anonymity.allow_noise",
                hint="say how much, as `noise: {most: 0.25}`, or leave it out",
            )
        if self.noise is not None and self.sticky:
            raise UsageError(
                "noise may publish what `sticky` keeps back: the moment it appears tells what `sticky` hides",
                where="z-anonymity.sticky",
                hint="choose one of the two",
            )
        if self.witnesses < 1 or self.longest < 1:
            raise UsageError("`witnesses` and `longest` must be at least 1", where="z-anonymity")
        _ = self.ceiling

    @property
    def ceiling(self) -> int:
        """The memory ceiling in bytes."""
        count, unit = self.memory[:-2].strip(), self.memory[-2:].upper()
        if unit not in SIZES or not count.isdigit() or int(count) < 1:
            raise UsageError("expected a size like 256MB", where="z-anonymity.memory")
        return int(count) * SIZES[unit]

    def start(
        self, schema: Schema, promises: Sequence[Promise], *, key: bytes, seed: int = 0, snapshot: bytes | None = None
    ) -> RunningZ:
        """See :class:`StreamMethod`. ``seed`` is not used: the only random choices are drawn from the key."""
        return RunningZ(self, schema, promise_of(promises), key, snapshot)


def promise_of(promises: Sequence[Promise]) -> ZAnonymity:
    """The one promise this method keeps; any other is refused.

    >>> promise_of([ZAnonymity(z=2, window="1h")]).z
    2
    """
    found = [p for p in promises if isinstance(p, ZAnonymity)]
    if len(found) != 1 or len(promises) != 1:
        raise UsageError(
            f"z-anonymity keeps exactly one z-anonymity promise, found {', '.join(p.use for p in promises) or 'none'}",
            where="method",
            hint="promise {use: z-anonymity, z: 20, window: 1h}, or choose batches for k-anonymity",
        )
    return found[0]


class RunningZ(Running):
    """z-anonymity over frames: each quasi column is decided for itself; an event with none left is withheld.

    >>> from shoal.core.schema import Column
    >>> schema = Schema({"time": Column("time"), "who": Column("subject"), "site": Column("quasi")})
    >>> running = ZAnon().start(schema, [ZAnonymity(2, "1h")], key=bytes(32))
    >>> frame = pl.DataFrame({"site": ["x", "x"]})
    >>> running.push(Batch(frame, np.array([0, 1]), pl.Series(["ada", "bob"]))).events.tolist()
    [1]
    """

    def __init__(self, spec: ZAnon, schema: Schema, promise: ZAnonymity, key: bytes, snapshot: bytes | None) -> None:
        if not schema.quasi:
            raise UsageError("no column has the role `quasi`", where="z-anonymity", hint="declare what is counted")
        refuse_limits(schema, "z-anonymity publishes the lowest level that enough people share")
        time = EventTime.of(schema)
        self.spec, self._schema = spec, schema
        self.engine = ZEngine(
            spec,
            promise,
            schema.quasi,
            key=key,
            late=time.late,
            ahead=time.ahead if time.name is not None else 2**60,
        )
        self._coders = {n: Coder(schema[n].hierarchy, key, n, spec.longest) for n in schema.quasi}
        self.engine.meant = {n: meaning(schema[n].hierarchy) for n in schema.quasi}
        self._people = Printer(key, "subject")
        self._faces = Faces() if spec.noise is not None else None
        self._released = 0
        self._dropped = np.zeros(16, np.int64)
        self._known: dict[str, tuple[int, int]] = {}
        if snapshot is not None:
            self._open(self.engine.restore(snapshot))

    def push(self, batch: Batch) -> Outcomes:
        """Decide a batch at once."""
        n = len(batch)
        subjects = self._prints(batch)
        coded = {name: coder.code(batch.frame[name]) for name, coder in self._coders.items()}
        for name, c in coded.items():
            known, total = self._known.get(name, (0, 0))
            self._known[name] = (known + int((c.codes >= 0).sum()), total + int((c.codes >= UNKNOWN).sum()))
        decided = self.engine.decide(batch.times, subjects, {name: (c.codes, c.chains) for name, c in coded.items()})
        levels = np.stack([d.levels for d in decided.values()], 1)
        released = (levels >= 0).any(axis=1)
        reasons = next(iter(decided.values())).reasons
        self._dropped += np.bincount(reasons[~released], minlength=16)
        self._released += int(released.sum())
        texts = {name: c.text(np.ascontiguousarray(levels[:, at])) for at, (name, c) in enumerate(coded.items())}
        # column by column: an expression is planned for longer than it takes to choose from a few thousand rows
        columns = [texts[c.name].alias(c.name) if c.name in texts else c for c in batch.frame.get_columns()]
        frame = pl.DataFrame(columns)
        keep = released if self.spec.withheld == "drop" else np.ones(n, np.bool_)
        chosen = pl.Series(keep)
        out = frame if keep.all() else pl.DataFrame([c.filter(chosen) for c in columns])
        numbers = batch.first + np.arange(n, dtype=np.int64)
        events = numbers[keep]
        if self._faces is not None:
            out, events = self._with_fakes(batch, subjects, decided, frame, out, events)
        return Outcomes(out, events, numbers[~keep], reasons[~keep])

    def _prints(self, batch: Batch) -> NDArray[np.int64]:
        if batch.subjects is None:  # every row a person of its own: its number
            return batch.first + 1 + np.arange(len(batch), dtype=np.int64)
        texts = batch.subjects
        return self._people.column(texts if texts.dtype == pl.String else texts.cast(pl.String))

    def _with_fakes(
        self,
        batch: Batch,
        subjects: NDArray[np.int64],
        decided: Mapping[str, Decided],
        frame: pl.DataFrame,
        out: pl.DataFrame,
        events: NDArray[np.int64],
    ) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """Put the invented rows behind the event they stand by; their number is -1."""
        assert self._faces is not None
        subject = self._schema.subject
        if subject is None or subject not in frame.columns:
            raise UsageError(
                "noise needs the subject column in the view", where="z-anonymity.noise", hint="show it masked"
            )
        self._faces.remember(subjects.tolist(), batch.frame[subject].to_list())
        rows: list[pl.DataFrame] = [out]
        order: list[NDArray[Any]] = [events.astype(np.float64)]
        for name, one in decided.items():
            if not len(one.fake_events):
                continue
            names = pl.Series(subject, self._faces.names(one.fake_subjects), dtype=frame.schema[subject])
            others = [pl.lit(None).cast(frame.schema[c]).alias(c) for c in decided if c != name]
            rows.append(frame[one.fake_events.tolist()].with_columns(names, *others))
            order.append(batch.first + one.fake_events + 0.5)
        self._faces.forget(np.concatenate([w.rows()[:, 1] for w in self.engine.windows.values()]))
        if len(rows) == 1:
            return out, events
        place = np.argsort(np.concatenate(order), kind="stable")
        marks = np.concatenate([events, *[np.full(len(o), -1, np.int64) for o in order[1:]]])
        return pl.concat(rows)[place], marks[place]

    def snapshot(self) -> bytes:
        """See :class:`Running`."""
        faces = self._faces.state() if self._faces is not None else []
        return self.engine.snapshot(msgspec.msgpack.encode((self._released, self._dropped.tolist(), faces)))

    def _open(self, extra: bytes) -> None:
        released, dropped, faces = msgspec.msgpack.decode(extra, type=tuple[int, list[int], list[tuple[int, Any]]])
        self._released, self._dropped = released, np.array(dropped, np.int64)
        if self._faces is not None:
            self._faces.restore(faces)

    @property
    def known(self) -> Mapping[str, tuple[int, int]]:
        """See :class:`Running`."""
        return self._known

    @property
    def counters(self) -> dict[str, int]:
        """Events by outcome; ``level_…`` and reasons count decisions of columns."""
        inner = self.engine.counters
        return inner | {"released": self._released, "withheld": int(self._dropped.sum())}

    def figures(self) -> dict[str, Any]:
        """See :class:`Running`."""
        return self.engine.figures()
