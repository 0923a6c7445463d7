"""The Grafana dashboard of a worker, as JSON: python scripts/grafana.py writes examples/kafka/grafana.json."""

from __future__ import annotations

import json
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "examples" / "kafka" / "grafana.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}

# title, unit, expressions with their legend; by rows of the dashboard
PANELS = {
    "Privacy": [
        ("Smallest released group", "short", [("min by (view) (shoal_smallest_group)", "{{view}}")]),
        ("Withheld share", "percentunit", [("max by (view) (shoal_withheld_share)", "{{view}}")]),
        ("Oldest held record", "s", [("max by (view) (shoal_oldest_held_seconds)", "{{view}}")]),
        ("Records held", "short", [("sum by (view) (shoal_records_held)", "{{view}}")]),
    ],
    "Flow": [
        ("Read", "cps", [("sum(rate(shoal_records_read_total[1m]))", "read")]),
        ("Written", "cps", [("sum by (view) (rate(shoal_records_written_total[1m]))", "{{view}}")]),
        ("Withheld", "cps", [("sum by (view) (rate(shoal_records_withheld_total[1m]))", "{{view}}")]),
        (
            "Withheld, by reason",
            "cps",
            [("sum by (view, reason) (rate(shoal_withheld_reasons_total[1m]))", "{{view}} {{reason}}")],
        ),
        (
            "Judged before they are published",
            "short",
            [
                ("max(shoal_verify_share)", "share asked for"),
                ("sum by (view) (increase(shoal_verify_checks_total[5m]))", "{{view}} checks"),
                ("sum by (view) (increase(shoal_verify_not_judged_total[5m]))", "{{view}} not judged"),
            ],
        ),
        (
            "Dead letters and lost records",
            "short",
            [
                ("sum(increase(shoal_dead_letters_total[5m]))", "dead letters"),
                ("sum(increase(shoal_records_lost_total[5m]))", "lost by retention"),
            ],
        ),
    ],
    "Engine": [
        (
            "Lag",
            "short",
            [
                ("max by (partition) (shoal_lag_records)", "partition {{partition}}"),
                ("max by (region) (shoal_regions_lag_blocks)", "region {{region}}"),
            ],
        ),
        (
            "Commit latency",
            "s",
            [
                (f"histogram_quantile({q}, sum by (le) (rate(shoal_commit_seconds_bucket[5m])))", f"p{q * 100:g}")
                for q in (0.5, 0.99)
            ],
        ),
        (
            "Versions of views, epochs of keys",
            "short",
            [
                ("max by (view) (shoal_view_version)", "{{view}}"),
                ("min by (key) (shoal_key_epoch)", "{{key}}, oldest in use"),
                ("max by (key) (shoal_key_epoch)", "{{key}}, newest in use"),
            ],
        ),
    ],
    "State": [
        (
            "Workers ready",
            "short",
            [("sum(shoal_ready)", "ready"), ("count(shoal_ready)", "workers"), ("sum(shoal_paused)", "paused")],
        ),
        ("Size of the newest snapshot", "bytes", [("sum by (view) (shoal_state_bytes)", "{{view}}")]),
        (
            "Snapshots, new beginnings, records replayed",
            "short",
            [
                ("sum(increase(shoal_snapshots_total[5m]))", "snapshots"),
                ("sum(increase(shoal_views_begun_anew_total[5m]))", "views begun without state"),
                ("sum(increase(shoal_records_replayed_total[5m]))", "records replayed"),
            ],
        ),
        ("Restore", "s", [("max(shoal_restore_seconds)", "last restore")]),
    ],
}


def dashboard() -> dict[str, object]:
    """The whole dashboard: one line of panels per row."""
    panels: list[dict[str, object]] = []
    for line, (row, entries) in enumerate(PANELS.items()):
        panels.append({"type": "row", "title": row, "gridPos": {"x": 0, "y": line * 9, "w": 24, "h": 1}})
        for at, (title, unit, queries) in enumerate(entries):
            targets = [{"expr": e, "legendFormat": name, "refId": "ABC"[i]} for i, (e, name) in enumerate(queries)]
            panels.append(
                {
                    "type": "timeseries",
                    "title": title,
                    "datasource": SOURCE,
                    "gridPos": {"x": at * 6, "y": line * 9 + 1, "w": 6, "h": 8},
                    "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                    "targets": targets,
                }
            )
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "Shoal: role views on Kafka",
        "uid": "shoal-views",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def text() -> str:
    """As it is written."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
