"""The Kubernetes manifest without Helm: python scripts/manifest.py writes deploy/kubernetes.yaml from the chart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Made from deploy/helm by `python scripts/manifest.py`. First make the secrets shoal-clients, shoal-keys and
# shoal-users (deploy/helm/values.yaml says what is in them) and put your policy into the ConfigMap. Apply the ConfigMap
# and the Job, wait until the Job is complete, then apply the rest.
"""
FIRST = ("ConfigMap", "Job")


class Readable(yaml.SafeDumper):
    """Texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, _text)


def main() -> None:
    """Render the chart with its default values; what Helm does by hooks stands first here."""
    helm = Path(sys.executable).parent / "helm"
    words = [str(helm), "template", "shoal", str(ROOT / "deploy/helm")]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    objects = [one for one in yaml.safe_load_all(text) if one]
    for one in objects:
        one["metadata"].pop("annotations", None)
    objects.sort(key=lambda one: FIRST.index(one["kind"]) if one["kind"] in FIRST else len(FIRST))
    out = yaml.dump_all(objects, Dumper=Readable, sort_keys=False, width=120)
    (ROOT / "deploy/kubernetes.yaml").write_text(HEAD + out)


if __name__ == "__main__":
    main()
