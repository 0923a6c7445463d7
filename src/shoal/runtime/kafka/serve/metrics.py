"""A worker's counters for Prometheus, and its health: read when asked, so that the worker's loop pays nothing.

``/metrics``, ``/livez`` (the loop turns) and ``/readyz`` (partitions are assigned, their state is restored, and no
order says to stand still). No label and no figure is ever a person's value: labels are roles and partition numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shoal.core.errors import OutputError, UsageError
from shoal.runtime.kafka.serve.counters import BOUNDS, Counters

STUCK = 60.0  # seconds without a turn of the loop: the group has given the worker up by then


class Metrics:
    """A collector over :class:`Counters`, as prometheus-client asks for it."""

    def __init__(self, counters: Counters, clock: Callable[[], float] = time.time) -> None:
        self._counters = counters
        self._clock = clock
        self._health = Health(counters)

    def collect(self) -> Iterator[Any]:
        """All metrics as they stand now."""
        yield from self._totals()
        yield from self._views()
        yield from self._commits()
        yield from self._state()

    def _totals(self) -> Iterator[Any]:
        core, now = _library(), self._counters
        for name, text, value in (
            ("shoal_records_read", "Records read from the source.", now.read),
            ("shoal_dead_letters", "Records no view could read: pointers in the dead-letter topic.", now.dead),
            ("shoal_records_lost", "Records the source deleted before they were read.", now.lost),
            ("shoal_records_replayed", "Records read again in silence to rebuild state.", now.replayed),
            ("shoal_snapshots", "Snapshots of state written to the changelog.", now.snapshots),
            ("shoal_views_begun_anew", "Times a view had to begin without its state.", now.fresh),
        ):
            yield core.CounterMetricFamily(name, text, value=value)

    def _views(self) -> Iterator[Any]:
        core, now = _library(), self._counters
        written = core.CounterMetricFamily("shoal_records_written", "Records written to a view.", labels=["view"])
        withheld = core.CounterMetricFamily("shoal_records_withheld", "Records a view withholds.", labels=["view"])
        share = core.GaugeMetricFamily("shoal_withheld_share", "Withheld, of all decided.", labels=["view"])
        held = core.GaugeMetricFamily("shoal_records_held", "Records that wait for company.", labels=["view"])
        smallest = core.GaugeMetricFamily(
            "shoal_smallest_group", "The fewest people a released record hides among.", labels=["view"]
        )
        oldest = core.GaugeMetricFamily(
            "shoal_oldest_held_seconds", "Age of the oldest record that waits.", labels=["view"]
        )
        for view, count in now.written.items():
            kept = now.withheld.get(view, 0)
            written.add_metric([view], count)
            withheld.add_metric([view], kept)
            share.add_metric([view], kept / (count + kept) if count + kept else 0.0)
            held.add_metric([view], now.held.get(view, 0))
            sent = now.oldest.get(view)
            oldest.add_metric([view], max(0.0, self._clock() - sent / 1000) if sent is not None else 0.0)
        # a copy: the worker's loop goes on writing while this is read
        for view, size in dict(now.smallest).items():
            smallest.add_metric([view], size)
        why = core.CounterMetricFamily(
            "shoal_withheld_reasons",
            "Why a view withholds records, or columns of them.",
            labels=["view", "reason"],
        )
        for (view, reason), count in dict(now.reasons).items():
            why.add_metric([view, reason], count)
        yield from (written, withheld, why, share, held, smallest, oldest)
        if now.verify is None:
            return
        yield core.GaugeMetricFamily("shoal_verify_share", "The share that is judged beside the run.", value=now.verify)
        checks = core.CounterMetricFamily(
            "shoal_verify_checks", "Checks beside the run, none broken: a broken one ends the worker.", labels=["view"]
        )
        missed = core.CounterMetricFamily(
            "shoal_verify_not_judged", "Records released that no check could judge.", labels=["view"]
        )
        for family, table in ((checks, now.judged), (missed, now.unjudged)):
            for view, count in dict(table).items():
                family.add_metric([view], count)
        yield from (checks, missed)

    def _commits(self) -> Iterator[Any]:
        core, now = _library(), self._counters
        seen, buckets = 0, []
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), now.commit_classes, strict=True):
            seen += count
            buckets.append((bound, float(seen)))
        yield core.HistogramMetricFamily(
            "shoal_commit_seconds", "How long a commit takes.", buckets=buckets, sum_value=now.commit_sum
        )
        lag = core.GaugeMetricFamily(
            "shoal_lag_records", "Records of the source that are not read yet.", labels=["partition"]
        )
        for partition, unread in dict(now.lag).items():
            lag.add_metric([str(partition)], unread)
        yield lag
        if now.regions is not None:
            inner = core.GaugeMetricFamily(
                "shoal_regions_lag_blocks", "Blocks of the topic of regions that are not read yet.", labels=["region"]
            )
            for region, unread in dict(now.regions.lag).items():
                inner.add_metric([str(region)], unread)
            yield inner

    def _state(self) -> Iterator[Any]:
        core, now = _library(), self._counters
        state = core.GaugeMetricFamily("shoal_state_bytes", "Size of the newest snapshot.", labels=["view"])
        for view, size in dict(now.state_bytes).items():
            state.add_metric([view], size)
        yield state
        version = core.GaugeMetricFamily("shoal_view_version", "The version of a view that is served.", labels=["view"])
        epoch = core.GaugeMetricFamily("shoal_key_epoch", "The epoch of a key that masks and seals.", labels=["key"])
        for family, table in ((version, now.versions), (epoch, now.epochs)):
            for name, number in dict(table).items():
                family.add_metric([name], number)
        yield from (version, epoch)
        yield core.GaugeMetricFamily("shoal_restore_seconds", "The last restore of state.", value=now.restore_seconds)
        ready = float(self._health.ready)
        yield core.GaugeMetricFamily("shoal_ready", "Whether records are read and published.", value=ready)
        yield core.GaugeMetricFamily("shoal_paused", "Whether an order says to stand still.", value=float(now.paused))


class Health:
    """What ``/livez`` and ``/readyz`` answer."""

    def __init__(self, counters: Counters, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters, self._clock = counters, clock
        self._began = clock()

    @property
    def live(self) -> bool:
        """The loop turns, or is still on its way to the first turn, or reads state."""
        last = self._counters.beat or self._began
        return self._counters.restoring or self._clock() - last < STUCK

    @property
    def ready(self) -> bool:
        """Partitions are assigned, their state is restored, and no order says to stand still."""
        return not self._counters.waiting and not self._counters.paused and self.live


class Page:
    """The pages of one worker on one address; ``close`` when it stops."""

    def __init__(self, address: str, counters: Counters) -> None:
        host, port = address_of(address)
        exposition, registry = _pages(), _registry()
        registry.register(Metrics(counters))
        health = Health(counters)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    self._answer(200, exposition.CONTENT_TYPE_LATEST, exposition.generate_latest(registry))
                elif path in ("/livez", "/readyz"):
                    good = health.live if path == "/livez" else health.ready
                    why = b"ok\n" if good else b"paused\n" if counters.paused else b"not yet\n"
                    self._answer(200 if good else 503, "text/plain", why)
                else:
                    self._answer(404, "text/plain", b"/metrics /livez /readyz\n")

            def _answer(self, code: int, kind: str, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing: who asks how often is noise."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise OutputError(f"cannot listen there ({error.strerror})", where=address) from None
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def address_of(text: str) -> tuple[str, int]:
    """``:9100``, ``127.0.0.1:9100``; without a host this machine only, because metrics say how many people there are.

    >>> address_of(":9100"), address_of("0.0.0.0:80")
    (('127.0.0.1', 9100), ('0.0.0.0', 80))
    """
    host, sign, port = text.rpartition(":")
    if not sign or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"expected host:port or :port, found {text!r}", where="--metrics")
    return host or "127.0.0.1", int(port)


def _library() -> Any:
    try:
        from prometheus_client import core
    except ImportError:
        raise UsageError("prometheus-client is not installed", hint="pip install 'shoal[kafka]'") from None
    return core


def _pages() -> Any:
    _library()
    from prometheus_client import exposition

    return exposition


def _registry() -> Any:
    from prometheus_client import CollectorRegistry

    return CollectorRegistry()
