"""``shoal serve``: role views as a service on Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import App, Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import Json, answer, as_json, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.connect.kafka import Source
    from shoal.policy.document import Policy
    from shoal.runtime.kafka.provision.control import Word
    from shoal.runtime.kafka.serve.counters import Counters
    from shoal.runtime.kafka.serve.journal import Journal
    from shoal.runtime.kafka.serve.membership import Protocol
    from shoal.runtime.kafka.serve.metrics import Page
    from shoal.runtime.kafka.serve.service import Serving
    from shoal.runtime.sql.provision import Plan as TablesPlan
    from shoal.runtime.sql.provision import Tables
    from shoal.web.live import LivePage

app = App(
    name="serve",
    help="Role views as a service: on Kafka topics, users, rights, a worker that fills them; in PostgreSQL one table "
    "per role, users and rights (plan, apply, status, destroy).",
)

Flag = Annotated[bool, Parameter(negative=())]


@app.command
def plan(policy: str, *, only: str | None = None, commands: Flag = False, json: Json = False) -> None:
    """Show what `apply` would do; change nothing.

    Parameters
    ----------
    policy
        A policy whose source is Kafka or a table of PostgreSQL.
    only
        `topics`, where users and rights are managed elsewhere; `rights`, where only users are (certificates, tokens).
    commands
        Print all users and rights as commands of Kafka's own tools, for whoever manages them.
    json
        For machines.
    """
    from shoal.policy.load import load

    loaded = load(policy)
    if tables := _tables(loaded):
        only_with(False, "Kafka", only=only, commands=commands)
        made = tables.plan()
        plain = {"changes": made.changes, "wider": made.wider, "refusals": made.refusals}
        answer(as_json(plain) if json else str(made))
        return
    from shoal.runtime.kafka.provision.commands import commands as printed
    from shoal.runtime.kafka.provision.provision import Provisioner

    # the commands are those of users and rights, and for a shell
    only_with(not commands, "the plan itself: leave out --commands", only=only, json=json)
    service = Provisioner(loaded, only="topics" if commands else only)
    found = service.plan()
    if commands:
        answer("\n".join(printed(found.wanted, service.properties["bootstrap.servers"], service.cluster.mechanism)))
        return
    plain = {"changes": found.changes, "wider": found.wider, "refusals": found.refusals}
    answer(as_json(plain) if json else str(found))


@app.command
def apply(policy: str, *, only: str | None = None, allow_wider: Flag = False, passwords: Flag = False) -> None:
    """Make the cluster or the database look as the policy says. What is already so is not touched.

    Parameters
    ----------
    policy
        A policy whose source is Kafka or a table of PostgreSQL.
    only
        `topics`, where users and rights are managed elsewhere; `rights`, where only users are (certificates, tokens).
    allow_wider
        Roles may see more than before.
    passwords
        Set the passwords of users that are there, too, from the environment or their files: after a change of them.
    """
    from shoal.core.keys import KeyRing
    from shoal.policy.load import load

    loaded = load(policy)
    if tables := _tables(loaded):
        only_with(False, "Kafka", only=only, passwords=passwords)
        say(str(tables.apply(allow_wider=allow_wider, keys=KeyRing.load())))
        return
    from shoal.runtime.kafka.formats.registry import codec_of
    from shoal.runtime.kafka.provision.provision import Provisioner

    codec = codec_of(loaded)
    service = Provisioner(loaded, only=only, codec=codec, passwords=passwords)
    found = service.plan()
    service.apply(found, allow_wider=allow_wider, keys=KeyRing.load())
    if codec is not None:
        codec.close()
    say(str(found))


@app.command
def run(
    policy: str,
    *,
    commit_every: float = 0.5,
    protocol: str = "classic",
    name: str | None = None,
    session: float = 6.0,
    metrics: str | None = None,
    log: str = "text",
    verify: float | None = None,
    watch: Flag = False,
) -> None:
    """Fill the views, exactly once, until stopped (Ctrl-C or SIGTERM drains). Start more of them to share the work.

    Parameters
    ----------
    policy
        A policy whose source is Kafka, applied before.
    commit_every
        Seconds until what was read is published: longer ones hide better which records belong together.
    protocol
        The group protocol: classic, or consumer (KIP-848).
    name
        A name of this worker that outlives its process (a pod's, for example): started again before its session
        ends, it keeps its partitions and nobody else stops. Without one, others get them as soon as it leaves.
    session
        Seconds until the group gives up a worker that says nothing, and others get its partitions (protocol classic).
        `pause` and `apply` wait as long for workers with a name.
    metrics
        An address, `:9100` or `0.0.0.0:9100`, for /metrics (Prometheus), /livez and /readyz.
    log
        text, or json: one object per line on standard error, never a value.
    verify
        Judge this share of what views with promises release, by their definitions and before it is published: 1 for
        everything. A broken promise ends the worker; /metrics has the checks.
    watch
        Show how it goes on a page in the browser, of this machine only, by a link that works once. Needs the extra
        `web`.
    """
    import os
    import sys
    import time

    from shoal.cli.clients import until_asked
    from shoal.core.errors import UsageError
    from shoal.core.keys import KeyRing
    from shoal.policy.load import load
    from shoal.runtime.kafka.formats.registry import codec_of
    from shoal.runtime.kafka.provision.served import served_now
    from shoal.runtime.kafka.regions.stages import worker_of
    from shoal.runtime.kafka.serve.counters import Counters
    from shoal.runtime.kafka.serve.journal import Journal
    from shoal.runtime.kafka.serve.membership import Membership, checked_name, checked_session
    from shoal.runtime.kafka.serve.service import Service
    from shoal.runtime.warm import warm

    if protocol not in ("classic", "consumer"):
        raise UsageError(f"expected classic or consumer, found {protocol!r}", where="--protocol")
    if log not in ("text", "json"):
        raise UsageError(f"expected text or json, found {log!r}", where="--log")
    if verify is not None and not 0 < verify <= 1:
        raise UsageError("expected a share above 0 and up to 1", where="--verify", hint="for example --verify 0.1")
    member = Membership(cast("Protocol", protocol), checked_name(name), checked_session(session))
    loaded, asked = load(policy), until_asked()
    counters = Counters.of(list(loaded.views))
    counters.verify = verify
    journal = Journal(dataset=loaded.dataset) if log == "json" else None
    told = journal.say if journal else say
    page = _page(metrics, counters, told)
    shown = _shown(watch, loaded.dataset, counters, told)
    look = shown.board.look if shown is not None else _nobody
    codecs: list[Any] = []

    def make(latest: Policy) -> Serving:
        counters.restoring = True
        codec = codec_of(latest)
        if codec is not None:
            codec.register({role: one.topic for role, one in served_now(latest).items()})
            codecs.append(codec)
        options: dict[str, Any] = {"commit_every": commit_every, "membership": member, "codec": codec, "verify": verify}
        return worker_of(latest, KeyRing.load(), counters=counters, say=told, **options)

    if any(view.promises for view in loaded.views.values()):
        told("loading what views with promises compute by; what this machine has not compiled yet is compiled first")
    for view in loaded.views.values():
        warm(view)

    def stop() -> bool:
        counters.beat = time.monotonic()  # also while paused, or waiting for a new start
        if journal:
            journal.turn(counters)
        look()
        return asked()

    told("Ctrl-C drains and stops")
    try:
        Service(policy, make, counters=counters, say=told, failed=_heard(shown)).run(stop)
    except Exception as error:
        _failed(error, journal, shown)
        if journal is None or os.environ.get("SHOAL_DEBUG"):
            raise
        sys.exit(getattr(error, "exit_code", 3))  # it is told, as one object: a second time as text would be no JSON
    finally:
        for part in (page, shown, *codecs):
            if part is not None:
                part.close()
    if journal:
        journal.counted("stopped", counters)
    else:
        say(f"read {counters.read:,}, dead letters {counters.dead:,}, commits {counters.commits:,}")


def _nobody() -> None:
    """Nobody looks."""


def _heard(shown: LivePage | None) -> Callable[[str], None]:
    """Reports losses that a restart repairs, in addition to the log."""
    return shown.board.failed if shown is not None else lambda words: None


def _failed(error: Exception, journal: Journal | None, shown: LivePage | None) -> None:
    """Write to log and page what ended the run."""
    if journal:
        journal.failed(error)
    if shown is not None:
        shown.board.broke(error)


def _shown(asked: bool, title: str, counters: Counters, told: Callable[[str], None]) -> LivePage | None:
    if not asked:
        return None
    from shoal.web.board import LOSSES, Board, Sample, of_service
    from shoal.web.live import LivePage

    seen: dict[str, int] = {}

    def sample() -> Sample:
        for name, words in LOSSES.items():
            count = getattr(counters, name)
            if count > seen.get(name, 0):
                seen[name] = count
                page.board.failed(f"{count:,} {words} so far")
        return of_service(counters)

    page = LivePage(Board(title, sample), told)
    return page


def _page(address: str | None, counters: Counters, told: Callable[[str], None]) -> Page | None:
    if address is None:
        return None
    from shoal.runtime.kafka.serve.metrics import Page

    page = Page(address, counters)
    told(f"metrics and health on port {page.port}")
    return page


@app.command
def pause(policy: str) -> None:
    """Pause all workers after their next commit, also those that start later; returns when none is at work.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    """
    from shoal.runtime.kafka.provision.control import wait_for_rest

    source = _order(policy, "pause")
    wait_for_rest(source.properties, source.group)
    say(f"the workers of {source.topic} stand still")


@app.command
def resume(policy: str) -> None:
    """Let paused workers go on where they stopped.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    """
    _order(policy, "resume")


@app.command
def reload(policy: str) -> None:
    """Let all workers commit and read their policy file again.

    Parameters
    ----------
    policy
        A policy whose source is Kafka.
    """
    _order(policy, "reload")


def _order(policy: str, word: Word) -> Source:
    from shoal.connect.kafka import Source
    from shoal.policy.load import load
    from shoal.runtime.kafka.provision.control import send

    loaded = load(policy)
    source = Source(loaded.source, loaded.path)
    send(source.properties, source.topic, word)
    return source


@app.command
def status(policy: str, *, json: Json = False) -> int:
    """What was applied last, what has drifted since or is refused, who works, and how much is unread.

    Exit code 1 if something needs attention: drift, a refusal, an apply that did not end, paused workers, records that
    wait without any worker, offsets that are gone.

    Parameters
    ----------
    policy
        A policy whose source is Kafka or a table of PostgreSQL.
    json
        For machines.
    """
    from shoal.policy.load import load

    loaded = load(policy)
    if tables := _tables(loaded):
        made = tables.plan()
        plain = {"last": made.last, "drift": made.changes, "wider": made.wider, "refusals": made.refusals}
        answer(as_json(plain) if json else f"{_applied(made)}\n{made}")
        return 0 if made.well else 1
    from shoal.runtime.kafka.provision.provision import Provisioner
    from shoal.runtime.kafka.provision.status import status as asked

    found = asked(Provisioner(loaded))
    answer(as_json(found) if json else str(found))
    return 0 if found.well else 1


@app.command
def destroy(policy: str, *, yes: Flag = False, with_audit: Flag = False) -> None:
    """Take the views away: rights, users, topics or tables. The source is never touched.

    On Kafka the audit topic stays: who served what, and who took it away.

    Parameters
    ----------
    policy
        A policy whose source is Kafka or a table of PostgreSQL.
    yes
        Really do it.
    with_audit
        Delete the audit topic, too.
    """
    from shoal.core.errors import UsageError
    from shoal.policy.load import load

    only_with(yes, "--yes", with_audit=with_audit)
    if not yes:
        raise UsageError("this deletes all views", where="serve destroy", hint="--yes if that is meant")
    loaded = load(policy)
    if tables := _tables(loaded):
        only_with(False, "Kafka", with_audit=with_audit)
        changes = tables.destroy()
    else:
        from shoal.runtime.kafka.formats.registry import forget_schemas
        from shoal.runtime.kafka.provision.provision import Provisioner

        changes = [*Provisioner(loaded).destroy(audit=with_audit), *forget_schemas(loaded)]
    for change in changes:
        say(str(change))


def _tables(policy: Policy) -> Tables | None:
    """The service in a database, if the policy's source is one."""
    if policy.source.get("use") != "sql":
        return None
    from shoal.runtime.sql.provision import Tables

    return Tables(policy)


def _applied(plan: TablesPlan) -> str:
    if plan.last is None:
        return "nothing is applied"
    return f"applied: {len(plan.last.tables)} views of {plan.last.rows:,} rows; {len(plan.changes)} changes pending"
