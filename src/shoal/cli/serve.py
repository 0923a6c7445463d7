"""``shoal serve``: role views as a service on Kafka."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from shoal.cli.terminal import Json, answer, as_json, say

app = App(name="serve", help="Role views as a service on Kafka: topics, users, rights, and the worker that fills them.")

Flag = Annotated[bool, Parameter(negative=())]


@app.command
def plan(policy: str, *, only: str | None = None, json: Json = False) -> None:
    """Show what `apply` would do; change nothing.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    only
        `topics`, where users and rights are managed elsewhere.
    json
        For machines.
    """
    from shoal.policy.load import load
    from shoal.runtime.kafka.provision import Provisioner

    found = Provisioner(load(policy), only=only).plan()
    plain = {"changes": found.changes, "wider": found.wider, "refusals": found.refusals}
    answer(as_json(plain) if json else str(found))


@app.command
def apply(policy: str, *, only: str | None = None, allow_wider: Flag = False) -> None:
    """Make the cluster look as the policy says: topics, users, rights. What is already so is not touched.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    only
        `topics`, where users and rights are managed elsewhere.
    allow_wider
        Roles may see more than before.
    """
    from shoal.policy.load import load
    from shoal.runtime.kafka.provision import Provisioner

    service = Provisioner(load(policy), only=only)
    found = service.plan()
    service.apply(found, allow_wider=allow_wider)
    say(str(found))


@app.command
def run(policy: str, *, commit_every: float = 0.5, protocol: str = "classic") -> None:
    """Fill the views, exactly once, until stopped (Ctrl-C or SIGTERM drains). Start more of them to share the work.

    Parameters
    ----------
    policy
        A policy whose source is Kafka, applied before.
    commit_every
        Seconds between commits: larger ones hide better which records belong together.
    protocol
        The group protocol: classic, or consumer (KIP-848).
    """
    import signal
    from types import FrameType

    from shoal.core.errors import UsageError
    from shoal.core.keys import KeyRing
    from shoal.policy.load import load
    from shoal.runtime.kafka.worker import Worker

    if protocol not in ("classic", "consumer"):
        raise UsageError(f"expected classic or consumer, found {protocol!r}", where="--protocol")
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    worker = Worker(load(policy), KeyRing.load(), commit_every=commit_every, protocol=protocol)  # type: ignore[arg-type]
    say("serving; Ctrl-C drains and stops")
    counters = worker.run(lambda: bool(asked))
    say(f"read {counters.read:,}, dead letters {counters.dead:,}, commits {counters.commits:,}")


@app.command
def status(policy: str, *, json: Json = False) -> None:
    """What was applied last, and whether the cluster still looks like it.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    json
        For machines.
    """
    from shoal.policy.load import load
    from shoal.runtime.kafka.provision import Provisioner, summary

    service = Provisioner(load(policy))
    last = service.last_applied()
    drift = service.plan().changes
    answer(as_json({"last": last, "drift": drift}) if json else summary(last) + f"; {len(drift)} changes pending")


@app.command
def destroy(policy: str, *, yes: Flag = False) -> None:
    """Take the views away: rights, users, topics. The source is never touched.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    yes
        Really do it.
    """
    from shoal.core.errors import UsageError
    from shoal.policy.load import load
    from shoal.runtime.kafka.provision import Provisioner

    if not yes:
        raise UsageError("this deletes the view topics", where="serve destroy", hint="--yes if that is meant")
    for change in Provisioner(load(policy)).destroy():
        say(str(change))
