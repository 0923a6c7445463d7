"""``shoal consume``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import Json, MaybeWhole, Output, answer, as_json, say
from shoal.core.errors import PolicyError

if TYPE_CHECKING:
    from shoal.policy.document import Policy
    from shoal.runtime.kafka.tools.watch import Judge, Watched


def consume(
    policy: str,
    *,
    role: str,
    user: str | None = None,
    properties: str | None = None,
    output: Output = None,
    sent: str | None = None,
    limit: MaybeWhole = None,
    every: float = 5.0,
    end: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Read a role's view as that role, measure latency, and check live what it shows. Exit code 1 if a check fails.

    No column may appear that the role does not see, and the view's promises are judged by code that knows no method:
    over the columns, and over timestamps, keys, partitions and commits of the records, too.
    z-anonymity cannot be judged from a view, and it says so.

    Example: `shoal consume policy.yaml --role research --end`.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    role
        Whose view.
    user
        A user of the role; the first one without it. The password comes from where `serve apply` takes it.
    properties
        A file of client properties of that user instead.
    output
        Also write the records, as NDJSON; `-` is standard output.
    sent
        A column, shown in clear, with the time of sending in milliseconds (`shoal generate --sent`).
    limit
        Stop after this many records.
    every
        Seconds between two judgements.
    end
        Stop at the end of the topic instead of waiting for more.
    json
        What was seen as JSON, on standard output.
    """
    from pathlib import Path

    from shoal.cli.clients import client, until_asked
    from shoal.core.originals import keep_apart
    from shoal.policy.load import load
    from shoal.runtime.kafka.formats.registry import codec_of
    from shoal.runtime.kafka.tools.watch import Watch

    only_with(properties is None, "the policy's login: leave out --properties", user=user)
    loaded = load(policy)
    keep_apart([output], [policy, properties])
    codec = codec_of(loaded)
    login = client(properties, None) if properties else _as_user(loaded, role, user)
    decode = codec.decode_view if codec is not None else None
    watch = Watch(loaded, role, login, judge=_judge(loaded, role), decode=decode, sent=sent, every=every)
    if output is None or output == "-":
        import sys

        write: Any = sys.stdout.buffer.write if output == "-" else None
        seen = watch.run(stop=until_asked(), limit=limit, to_end=end, write=write)
    else:
        with Path(output).open("wb") as out:
            seen = watch.run(stop=until_asked(), limit=limit, to_end=end, write=out.write)
    if codec is not None:
        codec.close()
    (say if output == "-" else answer)(as_json(seen) if json else _text(role, seen))
    return 0 if seen.kept else 1


def _as_user(policy: Policy, role: str, user: str | None) -> dict[str, Any]:
    from pathlib import Path

    from shoal.connect.kafka import client_properties
    from shoal.runtime.provision.passwords import password_of

    users = policy.view(role).users
    name = user or next(iter(users), None)
    if name is None or name not in users:
        raise PolicyError("the role has no such user", where=f"views.{role}.users", hint="or give --properties")
    folder = Path(policy.path).parent
    login = {"sasl.username": name, "sasl.password": password_of(name, folder)}
    return client_properties(policy.source, folder, log_level=0, **login)


def _judge(policy: Policy, role: str) -> Judge | None:
    import dataclasses

    import msgspec

    from shoal.core.schema import Column, Schema
    from shoal.promises.base import those_about
    from shoal.release.judges import judge_of
    from shoal.release.wishes import Wishes
    from shoal.runtime.kafka.serve.stateful import reuses
    from shoal.runtime.kafka.tools.observed import COLUMNS, KEY, PARTITION, joined

    # z-anonymity is judged beside the original, and what is foreign is counted record by record
    promises = tuple(p for p in policy.view(role).promises if p.about != "events")
    if not promises:
        return None
    own = dataclasses.replace(judge_of(Wishes({"policy": policy, "view": role})), promises=promises, view=None)
    if those_about(promises, "curves"):  # a window leaves in one commit, a group on one partition
        return lambda frame: own.judge(frame.drop(COLUMNS, strict=False)).findings
    # t is measured against what the whole topic shows, not against what one commit does
    grouped = tuple(p for p in promises if not p.compares_with_all)
    beside = (KEY, PARTITION) if reuses(policy, role) else COLUMNS
    least = max((int(p.asked) for p in grouped), default=0)
    wider = Schema({**own.schema.columns, **{name: Column("quasi") for name in beside}})
    every = dataclasses.replace(own, promises=grouped, schema=wider)

    def judge(frame: Any) -> tuple[Any, ...]:
        found = own.judge(frame).findings
        if not grouped:
            return found
        more = every.judge(joined(frame, own.quasi, least)).findings
        named = ", ".join(name.strip("()") for name in beside)
        return (*found, *(msgspec.structs.replace(f, promise=f"{f.promise} also by {named}") for f in more))

    return judge


def _text(role: str, seen: Watched) -> str:
    lines = [f"{role}: {seen.records:,} records in {seen.seconds:.1f} s, {seen.unreadable:,} unreadable"]
    if seen.latency_ms:
        lines.append("latency: " + ", ".join(f"{name} {ms:,.0f} ms" for name, ms in seen.latency_ms.items()))
    if seen.foreign:
        lines.append(f"{seen.foreign:,} records show what the role must not see")
    lines += [f"verified: {f}" if f.kept else f"BROKEN: {f}" for f in seen.findings]
    return "\n".join([*lines, *[f"note: {n}" for n in seen.notes]])
