"""Alert rules for Prometheus beside the dashboard, as JSON (which is YAML, too): writes examples/kafka/alerts.json."""

from __future__ import annotations

import json
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "examples" / "kafka" / "alerts.json"

# of a partition that nobody reads yet, every worker that starts says how much is unread
UNREAD = "sum(max by (partition) (shoal_lag_records))"
BLOCKS = "sum(max by (region) (shoal_regions_lag_blocks))"
# name: expression, how long it must hold, how bad, what it means and what to do
RULES = {
    "ShoalNotReady": (
        "shoal_ready == 0 and shoal_paused == 0",
        "5m",
        "page",
        "A worker neither serves nor is paused.",
    ),
    "ShoalNobodyServes": (
        "absent(shoal_ready == 1)",
        "5m",
        "page",
        "No worker serves: look at their logs, and at `shoal serve status`.",
    ),
    "ShoalPaused": ("max(shoal_paused) == 1", "15m", "warn", "Workers stand still: `shoal serve resume`, or `status`."),
    "ShoalLagGrows": (
        f"{UNREAD} > 10000 and deriv({UNREAD}[10m:1m]) > 0",
        "10m",
        "warn",
        "Records come faster than they are published: start more workers.",
    ),
    "ShoalRegionsLag": (
        f"{BLOCKS} > 100 and deriv({BLOCKS}[10m:1m]) > 0",
        "10m",
        "warn",
        "Records come into regions faster than repartitioned views publish them: start more workers.",
    ),
    "ShoalRecordsLost": (
        "increase(shoal_records_lost_total[10m]) > 0",
        "0m",
        "page",
        "The source deleted records before they were read: retention is too short, or workers were away too long.",
    ),
    "ShoalStateLost": (
        "increase(shoal_views_begun_anew_total[10m]) > 0",
        "0m",
        "page",
        "A view began without its state: what it held is withheld.",
    ),
    "ShoalDeadLetters": (
        "increase(shoal_dead_letters_total[10m]) > 0",
        "0m",
        "warn",
        "Records that views cannot read: `shoal replay --dry-run` tells whether they fit by now.",
    ),
    "ShoalClocks": (
        'increase(shoal_withheld_reasons_total{reason=~"future|too_late|ahead_of_the_clock"}[10m]) > 0',
        "5m",
        "warn",
        "Events are far ahead of the others or come too late: a sender's clock is wrong, or its queue is long.",
    ),
    "ShoalWithholdsMost": (
        "shoal_withheld_share > 0.5",
        "15m",
        "warn",
        "A view withholds more than half of what it decides: its promise is too strict for the traffic.",
    ),
    "ShoalHoldsTooLong": (
        "shoal_oldest_held_seconds > 3600",
        "5m",
        "warn",
        "A record waits for company for more than an hour: set delay_time, or lower k.",
    ),
    "ShoalKeysDiffer": (
        "max by (key) (shoal_key_epoch) - min by (key) (shoal_key_epoch) > 0",
        "10m",
        "warn",
        "Workers seal with different epochs of a key: start all of them with the newest key ring.",
    ),
    "ShoalSmallestGroup": (
        "min by (view) (shoal_smallest_group) < 2",
        "0m",
        "page",
        "A released record hides among fewer than two people.",
    ),
}


def rules() -> dict[str, object]:
    """All rules as one group."""
    made = [
        {"alert": name, "expr": expr, "for": wait, "labels": {"severity": how_bad}, "annotations": {"summary": text}}
        for name, (expr, wait, how_bad, text) in RULES.items()
    ]
    return {"groups": [{"name": "shoal", "rules": made}]}


def text() -> str:
    """As it is written."""
    return json.dumps(rules(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
