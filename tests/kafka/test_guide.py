"""The operator's guide, from top to bottom on a real broker: every command does what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from stage import GUARD

from tests.cli.in_process import call

pytestmark = pytest.mark.system
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/kafka-guide.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


class Reader:
    """Somebody who follows the page to the letter, in a folder of their own."""

    def __init__(self, cluster, folder: Path) -> None:
        login = cluster.login()
        self.folder, self.worker = folder, None
        self.environment = {
            "KAFKA_BROKERS": login["bootstrap.servers"],
            "KAFKA_ADMIN_PASSWORD": login["sasl.password"],
        }

    def write(self, text: str) -> None:
        head, _, body = text.partition("\n")
        name, _, how = head.removeprefix("# ").partition(", ")
        file = self.folder / name
        if not how:
            file.write_text(body)
        elif how == "under views":
            file.write_text(file.read_text() + body)
        else:
            former = how.removeprefix("instead of ")
            assert file.read_text().count(former) == 1
            file.write_text(file.read_text().replace(former, body.strip()))
        if name == "policy.yaml":
            (self.folder / "worker.yaml").write_text(file.read_text().replace("admin.properties", "worker.properties"))

    def do(self, line: str) -> None:
        line, _, told = line.partition("    # exits with ")
        words = shlex.split(line)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
        elif words[:2] == ["kill", "-9"]:
            self.worker.kill()
            self.worker.wait(GUARD)
        elif words[0] == "kill":
            self.stop()
        elif words[-1] == "&":
            self.begin(words[1:-1])
        else:
            end = time.monotonic() + GUARD
            while True:  # a broker and a group need a moment until all of them know what was changed
                done = call(words[1:], self.folder, environment=self.environment)
                if done.returncode == int(told or 0) or words[1:3] != ["serve", "status"] or time.monotonic() > end:
                    break
                time.sleep(1)
            assert done.returncode == int(told or 0), f"{line}\n{done.stdout}\n{done.stderr}"
            self.last = done

    def begin(self, words: list[str]) -> None:
        import os

        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "-m", "shoal", *words],
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stderr=log,
            )

    def stop(self) -> None:
        assert self.worker is not None
        assert self.worker.poll() is None, (self.folder / "worker.log").read_text()[-2000:]
        self.worker.terminate()
        assert self.worker.wait(GUARD) == 0


def test_the_guide(cluster, tmp_path):
    reader = Reader(cluster, tmp_path)
    lines = 0
    try:
        for kind, text in BLOCK.findall(PAGE.read_text()):
            if kind != "console":
                reader.write(text)
                continue
            for line in text.splitlines():
                reader.do(line.removeprefix("$ "))
                lines += 1
    finally:
        if reader.worker is not None and reader.worker.poll() is None:
            reader.worker.kill()
            reader.worker.wait()
        admin = AdminClient(cluster.login())
        left = [t for t in admin.list_topics(timeout=30).topics if f"{t}.".startswith("patients.")]
        for future in admin.delete_topics(left).values():
            future.result(30)
    assert lines > 30
    assert sorted(left) == ["patients", "patients.shoal.audit"]
