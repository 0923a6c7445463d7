"""Jobs from options alone, without a policy. What only curves, streams or growing tables need is loaded for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.core.errors import UsageError
from shoal.release.adversary import EARLIER_RELEASE
from shoal.release.base import Job
from shoal.release.columns import schema_of
from shoal.release.common import OF_CHUNKS, Common, earlier_releases, refuse_later_rows, reported, saved_model
from shoal.release.methods import method_of, with_effort
from shoal.release.promised import tightened
from shoal.release.register import register_of
from shoal.release.table import TableJob
from shoal.release.wishes import Wishes
from shoal.tables import TABLE_METHODS


def of_options(wishes: Wishes) -> Job:
    """The job that options describe.

    >>> of_options(Wishes({"quasi": ["age"], "k": 3})).promises
    (KAnonymity(k=3),)
    """
    if wishes.has("view"):
        wishes.refuse("view", "views are defined in a policy", "give the policy, too")
    if wishes.has("series"):
        from shoal.release.curve_options import curves_of_options

        return curves_of_options(wishes)
    if wishes.has("z") or wishes.has("window"):
        from shoal.release.stream_options import stream_of_options

        return stream_of_options(wishes)
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
        # nothing compares plain cells: they leave as they are written
        "exact": tuple(schema.of("plain")),
    }
    if append is not None:
        from shoal.release.chunks import ChunksJob

        refuse_later_rows(wishes, "append", promises)
        if any(schema[name].loss is not None for name in schema.quasi):
            wishes.refuse(
                "losses", "has no effect on a growing table: not all of its rows are known yet", "leave it out"
            )
        if EARLIER_RELEASE in more["waived"]:
            wishes.refuse("waive", f"has no effect: {OF_CHUNKS}", "leave it out")
        # no default: a growing table chooses for itself how its first rows are grouped
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
