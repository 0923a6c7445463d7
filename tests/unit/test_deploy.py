"""The Helm chart and the plain manifest: rendered by Helm itself, and checked against the schemas of Kubernetes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from shoal.policy.load import parse

ROOT = Path(__file__).resolve().parents[2]
CHART, MANIFEST = ROOT / "deploy/helm", ROOT / "deploy/kubernetes.yaml"
HELM = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
VERSION = "1.31"


def rendered(*values: str) -> list[dict]:
    if HELM is None:
        pytest.skip("no Helm for this machine")
    words = [HELM, "template", "shoal", str(CHART), *(word for value in values for word in ("--set", value))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def by_kind(objects: list[dict]) -> dict[str, dict]:
    return {one["kind"]: one for one in objects}


def containers(one: dict) -> tuple[dict, list[dict]]:
    pod = one["spec"]["template"]["spec"]
    return pod, pod["containers"]


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("apply.enabled=false", "workers=5", "verify=0.1", "image.tag=1.2"),
        ("apply.allowWider=true", "apply.only=rights", "cache.storageClassName=fast", "files.tree\\.csv=a"),
    ],
)
def test_what_the_chart_makes_is_what_kubernetes_takes(values):
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for one in rendered(*values):
        kubernetes_validate.validate(one, VERSION, strict=True)


def test_an_unknown_field_would_be_noticed():
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    service = by_kind(rendered())["Service"]
    service["spec"]["sources"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, VERSION, strict=True)


def test_the_manifest_is_the_chart_rendered():
    """``python scripts/manifest.py`` writes it anew."""
    found = sorted(yaml.safe_load_all(MANIFEST.read_text()), key=lambda one: one["kind"])
    assert found == sorted(map(without_hooks, rendered()), key=lambda one: one["kind"])


def without_hooks(one: dict) -> dict:
    """An object without what only Helm reads."""
    meta = {k: v for k, v in one["metadata"].items() if k != "annotations"}
    return {**one, "metadata": meta}


def test_nobody_is_root_and_workers_have_no_power():
    made = by_kind(rendered())
    for kind in ("StatefulSet", "Job"):
        pod, all_of_them = containers(made[kind])
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for one in all_of_them:
            assert one["securityContext"]["readOnlyRootFilesystem"] is True
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    pod, [worker] = containers(made["StatefulSet"])
    assert "admin" not in str(pod)
    assert [one["secretRef"]["name"] for one in worker["envFrom"]] == ["shoal-keys"]
    pod, [apply] = containers(made["Job"])
    assert {one["secretRef"]["name"] for one in apply["envFrom"]} == {"shoal-keys", "shoal-users"}
    # the service finds workers, never the job
    labels = made["Job"]["spec"]["template"]["metadata"]["labels"]
    assert not made["Service"]["spec"]["selector"].items() <= labels.items()
    assert made["Service"]["spec"]["selector"] == made["StatefulSet"]["spec"]["selector"]["matchLabels"]


def test_the_commands_are_ours_and_the_policy_is_one():
    from shoal.cli import build

    made = by_kind(rendered("verify=0.5", "apply.allowWider=true", "apply.only=topics"))
    policy = parse(made["ConfigMap"]["data"]["policy.yaml"], "policy.yaml")
    assert policy.source["worker"] == "shoal"
    for kind in ("StatefulSet", "Job"):
        _, [one] = containers(made[kind])
        serve, command, file, *options = one["args"]
        assert (serve, file) == ("serve", "policy.yaml")
        known = {n for a in build()["serve"][command].assemble_argument_collection() for n in a.names}
        assert {word for word in options if word.startswith("--")} <= known
    _, [worker] = containers(made["StatefulSet"])
    assert worker["args"][worker["args"].index("--verify") + 1] == "0.5"
