"""A real schema registry (Apicurio, in memory) on loopback, spoken to as Confluent's: for tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache" / "kafka" / "registry"


def available() -> str | None:
    """Why no registry can run here, or nothing if one can."""
    if shutil.which("java") is None:
        return "no Java"
    if not (HOME / ".whole").exists():
        return "the registry is not there (sh scripts/kafka/jars.sh)"
    return None


@dataclass
class Registry:
    """One registry in a folder of its own."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> Registry:
        """Start it and wait until it answers."""
        with socket.socket() as knock:
            knock.bind(("127.0.0.1", 0))
            self.port = port = int(knock.getsockname()[1])
        self.folder.mkdir(parents=True, exist_ok=True)
        jar = next(HOME.glob("*-runner.jar"))
        words = ["java", "-Xmx384m", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}", "-jar", str(jar)]
        with (self.folder / "registry.log").open("wb") as log:
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/subjects", timeout=5):
                    return self
            except (OSError, urllib.error.URLError):
                time.sleep(0.3)
        raise RuntimeError(f"no registry:\n{(self.folder / 'registry.log').read_text()[-1500:]}")

    @property
    def url(self) -> str:
        """Where clients knock."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def stop(self) -> None:
        """Stop it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
