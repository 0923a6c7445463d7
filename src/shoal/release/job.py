"""From a policy or options to something that runs: here, and only here.

Whatever a job would ignore is an error that names the option. A policy's promise may be made stronger by an option,
never weaker, and the report says so. Python, the command line, Kafka and the browser all come through here.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from shoal.core.errors import PolicyError
from shoal.core.schema import refuse_limits
from shoal.policy.document import Policy, View
from shoal.promises.base import those_about
from shoal.release.adversary import LINKED_ROWS, UNIQUE_PLAIN
from shoal.release.base import Job
from shoal.release.common import (
    OF_CURVES,
    OF_STREAMS,
    Common,
    earlier_releases,
    nothing_to_waive,
    reported,
    saved_model,
)
from shoal.release.methods import method_of, series_words, with_effort
from shoal.release.options import of_options
from shoal.release.promised import promised_view, refuse_nothing
from shoal.release.register import register_of
from shoal.release.stream_names import linking
from shoal.release.table import TableJob
from shoal.release.wishes import Wishes
from shoal.streams import STREAM_METHODS
from shoal.streams.base import StreamMethod
from shoal.tables import TABLE_METHODS
from shoal.views.role_view import RoleView


def job_of(wishes: Wishes) -> Job:
    """The job that was asked for; every wish has an effect on it, or is refused.

    >>> job = job_of(Wishes({"quasi": ["age"], "k": 5}))
    >>> type(job).__name__, job.promises
    ('TableJob', (KAnonymity(k=5),))
    """
    wishes.take("json")  # how the report is printed: every job has one
    if wishes.has("model"):
        common = Common.of(wishes, "new rows")
        from shoal.release.joining import joining_job

        kept = (LINKED_ROWS, UNIQUE_PLAIN)
        nothing_to_waive(wishes, common._asdict(), "the groups are those of the release before", order=True, but=kept)
        job: Job = joining_job(wishes, common.keys, common._asdict())
    else:
        job = _of_policy(wishes) if wishes.has("policy") else of_options(wishes)
    # what nobody took has no effect on this job: an error that names the option
    wishes.done(_noun(job), hint=_hint(job))
    return job


def _noun(job: Job) -> str:
    return f"{job.noun} released by a policy" if job.view is not None else job.noun


def _hint(job: Job) -> str:
    if job.view is not None:
        return "the policy says what the columns are, what is shown and how: leave the option out, or change the policy"
    return "leave it out"


def _of_policy(wishes: Wishes) -> Job:
    policy, chosen, view, promises, notes = promised_view(wishes)
    common = Common.of(wishes, policy.dataset, chosen.waive)
    more: dict[str, Any] = {**common._asdict(), "promises": promises, "notes": tuple(notes)}
    where = f"views.{chosen.name}.method"
    # a view that shows nothing would keep any promise
    refuse_nothing(policy, view, promises)
    # windows of curves in a stream come through their stream method, below
    if those_about(promises, "curves") and not isinstance(chosen.method, StreamMethod):
        return _curves_of_policy(policy, chosen, view, more, wishes)
    if not promises:
        if chosen.method is not None:
            raise PolicyError(
                "the view names a method and promises nothing", where=where, hint="say what it must keep: `promises:`"
            )
        from shoal.release.roles import MasksJob

        nothing_to_waive(wishes, more, "the view promises nothing", order=True)
        return MasksJob(
            schema=policy.schema, view=view, types=policy.types(), exact=tuple(policy.exact(chosen)), **more
        )
    method = method_of(wishes, (TABLE_METHODS, STREAM_METHODS), chosen.method)
    if isinstance(method, StreamMethod):
        from shoal.release.stream import stream_job

        kept = (LINKED_ROWS,) if linking(view, promises) else ()
        nothing_to_waive(wishes, reported(wishes, more), OF_STREAMS, but=kept)
        return stream_job(policy, chosen.name, more.pop("keys"), method=method, **more)
    if events := those_about(promises, "events"):
        raise PolicyError(
            f"{events[0].use} is promised of streams, and the view names no stream method",
            where=where,
            hint="method: z-anonymity",
        )
    return TableJob(
        schema=policy.schema,
        view=view,
        policy=policy,
        types=policy.types(),
        exact=tuple(policy.exact(chosen)),
        method=with_effort(method, wishes),
        cells=wishes.one_of("cells", "text", "struct", "bounds"),
        previous=earlier_releases(wishes, policy.schema),
        register=register_of(wishes, promises, policy.schema, view),
        save_model=saved_model(wishes, policy.schema, promises, view),
        memory=wishes.take("memory"),
        engine=wishes.one_of("engine", "here", "spark"),
        **reported(wishes, more),
    )


def _curves_of_policy(policy: Policy, chosen: View, view: RoleView, more: dict[str, Any], wishes: Wishes) -> Job:
    from shoal.release.curve_options import is_compact, with_means
    from shoal.release.curves import CurvesJob, about_curves, view_reading

    refuse_limits(policy.schema, "curves are released under envelopes")
    _, others = about_curves(more["promises"])
    nothing_to_waive(wishes, more, OF_CURVES)
    reading = series_words(wishes, chosen.method, others=others)
    reading |= {name: wishes.take(name) for name in ("missing", "every") if wishes.has(name)}
    job = CurvesJob(
        schema=policy.schema,
        view=view,
        policy=policy,
        types=policy.types(),
        exact=tuple(policy.exact(chosen)),
        compact=is_compact(wishes),
        cells=wishes.one_of("cells", "text", "struct"),
        representatives=with_means(wishes, more["promises"]),
        engine=wishes.one_of("engine", "here", "spark"),
        **reported(wishes, more),
    )
    # what the policy says of its columns comes last: an option does not overrule it
    return dataclasses.replace(job, reading={**reading, **view_reading(policy, view)})
