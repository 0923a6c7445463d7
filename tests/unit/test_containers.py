"""The container files cannot be run here, so their structure is checked: what they name exists, and nothing is root."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "kafka"


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def properties(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_image_is_not_root_and_copies_only_what_is_there():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    steps = [line.split(maxsplit=1) for line in lines if re.match(r"^[A-Z]+ ", line)]
    final = steps[max(i for i, (word, _) in enumerate(steps) if word == "FROM") :]
    users = [rest for word, rest in final if word == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    start = next(i for i, (word, _) in enumerate(final) if word == "USER")
    assert {"ENTRYPOINT", "CMD"} <= {word for word, _ in final[start:]}
    for word, rest in steps:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / name).exists() for name in rest.split()[:-1])
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert allowed[0] == "*"
    copied = [n for word, rest in steps if word == "COPY" and "--from" not in rest for n in rest.split()[:-1]]
    assert {f"!{name}" for name in copied} <= set(allowed)
    assert not any(word in "\n".join(lines) for word in ("SHOAL_KEY", "PASSWORD"))


def test_services_start_in_the_order_of_their_health(compose):
    services = compose["services"]
    order: list[str] = []
    waiting = dict(services)
    while waiting:
        ready = [n for n, s in waiting.items() if set(s.get("depends_on", {})) <= set(order)]
        assert ready, "services wait for each other"
        order += ready
        waiting = {n: s for n, s in waiting.items() if n not in ready}
    assert order.index("broker") < order.index("apply") < order.index("worker") < order.index("patients")
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
            else:
                assert how["condition"] == "service_completed_successfully"
                assert "restart" not in services[name]


def test_networks_volumes_and_mounted_files_exist(compose):
    for service in compose["services"].values():
        assert set(service["networks"]) <= set(compose["networks"])
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (ROOT / source).is_dir()
                assert mode == ["ro"]
            else:
                assert source in compose["volumes"]
                assert target.startswith("/")
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_no_secret_stands_in_a_file(compose):
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name or "KEY" in name:
                assert value.startswith("${" + name + ":?")
    for path in EXAMPLE.glob("*.properties"):
        assert "secret" not in path.read_text()


def test_the_containers_broker_is_the_tests_broker():
    from scripts.kafka import broker

    cluster = broker.Cluster(Path())
    cluster.ports = [(9092, 9093)]
    ours = properties(cluster._properties(1).replace(broker.SECRET, "${env:KAFKA_ADMIN_PASSWORD}"))
    theirs = properties((EXAMPLE / "server.properties").read_text())
    places = {"listeners", "advertised.listeners", "log.dirs"}
    own = {k for k in theirs if k.startswith("config.providers")}
    assert {k: v for k, v in theirs.items() if k not in places | own} == {
        k: v for k, v in ours.items() if k not in places
    }


def test_the_commands_and_the_policy_are_ours(compose):
    from shoal.cli import COMMANDS
    from shoal.policy.load import load

    for service in compose["services"].values():
        if service.get("image") == "shoal" and "command" in service:
            assert service["command"][0] in COMMANDS
    policy = load(EXAMPLE / "policy.yaml")
    users = {f"SHOAL_PASSWORD_{u.upper()}" for v in policy.views.values() for u in v.users}
    users.add(f"SHOAL_PASSWORD_{policy.source['worker'].upper()}")
    assert users <= set(compose["services"]["apply"]["environment"])
    assert policy.source["topic"] in str(compose["services"]["source"]["command"])


def test_the_worker_is_not_the_administrator(compose):
    environment = compose["services"]["worker"]["environment"]
    assert environment["SHOAL_PROPERTIES"] == "worker.properties"
    assert {n for n in environment if "PASSWORD" in n} == {"SHOAL_PASSWORD_SHOAL"}
    login = properties((EXAMPLE / "worker.properties").read_text())
    assert login["sasl.username"] == "shoal"
    assert "ADMIN" not in str(login)
