"""What a stream can carry, told before it runs: people per window by cell, and what to change where they are few."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from shoal.core.errors import ShoalError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.keys import KeyRing
from shoal.core.schema import Schema
from shoal.core.time import EventTime, micros, words
from shoal.measures.carrying import SHARE, Ints, LevelCarries, carried, windows_of
from shoal.policy.document import Policy
from shoal.release.stream import StreamJob, stream_job
from shoal.streams.base import StreamMethod
from shoal.streams.bounds import MOST_DELAY
from shoal.streams.chains import Coder
from shoal.streams.texts import Printer
from shoal.views.derived import with_derived

TIMES = (2, 5, 10, 20, 50, 100)  # a delay or a window is tried so many times as long
KEY = bytes(32)  # cells are compared here and nowhere else


class Carries(msgspec.Struct, frozen=True):
    """What a view's stream carries as it is, and what would carry the people it promises."""

    wanted: int
    events: int  # of a window, on average
    people: int  # of a window, the median
    levels: list[LevelCarries]
    names: list[str]
    proposals: list[str] = []

    @property
    def enough(self) -> bool:
        """Whether some level has the people for most events."""
        return any(one.share >= SHARE for one in self.levels)

    def __str__(self) -> str:
        per = "; ".join(
            f"{name}: {one.people:,} people ({one.share:.0%} with {self.wanted:,})"
            for name, one in zip(self.names, self.levels, strict=True)
        )
        head = f"a window has {self.events:,} events of {self.people:,} people; {SHARE:.0%} of the events stand with"
        return "; ".join([f"{head} {per}", *self.proposals])


def carries(policy: Policy, frame: pl.DataFrame, *, keys: KeyRing) -> dict[str, Carries]:
    """Per view with a stream method: what the sample's stream carries. Views without groups of people are left out.

    >>> from shoal.policy.load import parse
    >>> policy = parse('''
    ... columns: {at: time, who: subject, site: {role: quasi, hierarchy: path}}
    ... views: {m: {show: [site], promises: [{use: z-anonymity, z: 2, window: 1h}], method: z-anonymity}}''')
    >>> frame = pl.DataFrame({"at": [0, 1, 2], "who": ["a", "b", "c"], "site": ["x.1", "x.2", "x.2"]})
    >>> [(one.people, round(one.share, 2)) for one in carries(policy, frame, keys=KeyRing())["m"].levels]
    [(1, 0.67), (3, 1.0)]
    """
    found = {}
    for role, view in policy.views.items():
        if not isinstance(view.method, StreamMethod) or not view.promises:
            continue
        try:
            one = _carries(stream_job(policy, role, keys), with_derived(frame, policy.schema))
        except ShoalError:
            continue  # the dry run of the view says why it cannot be made
        if one is not None:
            found[role] = one
    return found


def _carries(job: StreamJob, frame: pl.DataFrame) -> Carries | None:
    # the strongest of several promises
    wanted = max(int(one.asked) if one.about == "events" else one.rule().k for one in job.promises)
    events, span = job.method.waits_for(job.promises)
    time, subject = EventTime.of(job.schema), job.schema.subject
    quasi = [name for name in job.schema.quasi if name in frame.columns]
    if not (events or span) or not quasi or not frame.height or (span and time.name is None):
        return None
    times = np.arange(frame.height) if time.name is None else micros(frame[time.name], time.unit)
    who = np.arange(frame.height) + 1
    if subject is not None and subject in frame.columns:
        who = Printer(KEY, "subject").column(frame[subject].cast(pl.String))
    cells, names = _cells(job.schema, frame, quasi)
    # what cannot be counted: no time, nobody, or a value outside its hierarchy
    good = (times >= 0) & (who != 0) & (cells[0] != 0)
    times, who, cells = times[good], who[good], [level[good] for level in cells]
    if not len(times):
        return None
    windows = windows_of(times, events, span)
    found = carried(windows, who, cells, wanted)
    of_window = np.unique(np.column_stack([windows, who]), axis=0)[:, 0]
    made = Carries(
        wanted, round(len(times) / (int(windows.max()) + 1)), int(np.median(np.bincount(of_window))), found, names
    )
    proposals = _proposed(made, (times, who, cells), events, span)
    if not made.enough:
        wider = _wider(job.schema, frame.filter(pl.Series(good)), quasi, (windows, who), wanted)
        proposals = [proposals[0], *wider, *proposals[1:]]
    return msgspec.structs.replace(made, proposals=proposals)


def _cells(schema: Schema, frame: pl.DataFrame, quasi: Sequence[str]) -> tuple[list[Ints], list[str]]:
    """The cell of each event with all columns at one level, level by level; 0 where a value cannot be used."""
    chains = [_chain(schema[name].hierarchy, frame[name]) for name in quasi]
    bad = np.any([chain[:, 0] == 0 for chain in chains], axis=0)
    known = [hierarchy for name in quasi if (hierarchy := schema[name].hierarchy) is not None]
    out, names = [], []
    for level in range(max(chain.shape[1] for chain in chains)):
        nodes = np.column_stack([c[:, level] if level < c.shape[1] else np.zeros(len(c), np.int64) for c in chains])
        # no column has a node at this level
        if level and not nodes.any():
            break
        out.append(np.where(bad, 0, _numbered(nodes) + 1))
        cells = next((called for one in known if (called := one.called(level)) is not None), None)
        named = f"level {level} ({cells})" if cells and len(quasi) > 1 else cells or f"level {level}"
        names.append(named if level else "exact")
    return out, names


def _chain(hierarchy: Hierarchy | None, values: pl.Series) -> Ints:
    """The nodes of each event, from its value upwards; zeros where it cannot be used."""
    coded = Coder(hierarchy, KEY, values.name).code(values)
    # a last row of zeros, for values without a code
    chain = np.vstack([coded.chains, np.zeros((1, coded.chains.shape[1]), np.int64)])
    return chain[np.where(coded.codes >= 0, coded.codes, len(coded.chains))]


def _wider(
    schema: Schema, frame: pl.DataFrame, quasi: Sequence[str], people: tuple[Ints, Ints], wanted: int
) -> list[str]:
    """Cells of positions that would carry the people, with every other column as coarse as it gets, or suppressed."""
    told = []
    for name in quasi:
        hierarchy = schema[name].hierarchy
        wider = [one for factor in TIMES if hierarchy is not None and (one := hierarchy.wider(factor)) is not None]
        if not wider:
            continue
        others = [_chain(schema[n].hierarchy, frame[n]) for n in quasi if n != name]
        coarse = [chain[:, int(np.flatnonzero(chain.any(axis=0))[-1])] for chain in others if chain.any()]
        cells = [_chain(one, frame[name])[:, -1] for one in wider]
        for beside, how in ((coarse, ""), ([], " and the other columns suppressed"))[: 2 if coarse else 1]:
            levels = [_numbered(np.column_stack([nodes, *beside])) for nodes in cells]
            fit = next((one for one in carried(*people, levels, wanted) if one.share >= SHARE), None)
            if fit is not None:
                told.append(f"with {wider[fit.level].called(1)} in {name!r}{how}, as a further level of its hierarchy")
                break
    return told


def _numbered(nodes: Ints) -> Ints:
    """The number of each event's cell, from what each column shows of it."""
    place: Ints = np.unique(nodes, axis=0, return_inverse=True)[1].reshape(-1)
    return place


def _proposed(made: Carries, stream: tuple[Ints, Ints, list[Ints]], events: int, span: int) -> list[str]:
    """What to change: the level that carries it, a longer delay or window, or fewer people."""
    times, who, cells = stream
    fit = next((one for one in made.levels if one.share >= SHARE), None)
    if fit is not None:
        return [f"{made.wanted:,} people are carried from {made.names[fit.level]} on"]
    told = [f"{made.wanted:,} people are carried at no level"]
    lasted = int(times.max() - times.min())
    for factor in TIMES:
        more, longer = min(events * factor, MOST_DELAY), span * factor
        if (more > len(times) if events else longer > lasted) or (events and more == events):
            break  # the sample is too short to say
        found = carried(windows_of(times, more, longer), who, cells, made.wanted)
        fit = next((one for one in found if one.share >= SHARE), None)
        if fit is not None:
            what = " and ".join(
                [*([f"delay: {more - 1}"] if events else []), *([f"{words(longer)} of time"] if span else [])]
            )
            return [*told, f"with {what} from {made.names[fit.level]} on"]
    best = max(one.people for one in made.levels)
    return [
        *told,
        f"nor with a delay or window that this sample can try; as it is, {best:,} would be, or coarser levels",
    ]
