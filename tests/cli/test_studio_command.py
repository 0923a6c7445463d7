"""``shoal studio``: every option reaches the server, and wrong ones are refused."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from shoal.cli import build
from tests.cli.in_process import call

OPTIONS = {
    "--address": (["--address", ":8123"], {"host": "127.0.0.1", "port": 8123}),
    "--largest": (["--largest", "5 MB"], {"largest": 5 << 20}),
    "--no-browser": (["--no-browser"], {"opened": []}),
    "data": (["patients.csv"], {"data": "patients.csv"}),
}
BASE = {"data": None, "host": "127.0.0.1", "port": 0, "largest": 2 << 30, "opened": ["link"]}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server was asked for."""
    seen: dict[str, Any] = {"opened": []}

    def run(data: Any, host: str, port: int, largest: int, tell: Any) -> None:
        seen.update(data=data, host=host, port=port, largest=largest)
        tell("link")

    monkeypatch.setattr("shoal.web.server.run", run)
    monkeypatch.setattr("webbrowser.open", seen["opened"].append)
    return seen


def test_every_option_is_tried() -> None:
    found = build()["studio"].assemble_argument_collection()
    names = {n for a in found if a.parse and a.field_info.is_keyword_only for n in a.names}
    assert names - {"--help", "--version"} == {*OPTIONS, "--browser"} - {"data"}


@pytest.mark.parametrize("option", ["", *OPTIONS])
def test_an_option_reaches_the_server(option: str, asked: dict[str, Any], tmp_path: Path) -> None:
    words, changed = OPTIONS.get(option, ([], {}))
    done = call(["studio", *words], tmp_path)
    assert done.returncode == 0, done.stderr
    assert asked == {**BASE, **changed}
    assert "works once: link" in done.stderr


@pytest.mark.parametrize("words", [["--largest", "much"], ["--largest", "0"], ["--address", "here"]])
def test_wrong_options_are_refused(words: list[str], asked: dict[str, Any], tmp_path: Path) -> None:
    done = call(["studio", *words], tmp_path)
    assert done.returncode == 2
    assert "hint" in done.stderr


def test_another_address_than_loopback_is_warned_of(asked: dict[str, Any], tmp_path: Path) -> None:
    assert "unencrypted" in call(["studio", "--address", "0.0.0.0:0"], tmp_path).stderr


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_it_serves_and_wipes_its_folder_however_it_is_stopped(tmp_path: Path, sign: signal.Signals) -> None:
    (tmp_path / "a.csv").write_text("age,zip\n30,10115\n41,10117\n")
    (tmp_path / "tmp").mkdir()
    started = subprocess.Popen(
        [sys.executable, "-m", "shoal", "studio", "a.csv", "--no-browser"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(tmp_path / "tmp"), "PATH": ""},
    )
    assert started.stderr is not None
    try:
        link = re.search(r"http\S+", started.stderr.readline())
        assert link is not None
        base = link[0].partition("/enter")[0]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(base, timeout=30)
        assert refused.value.code == 403
        refused.value.close()
        with urllib.request.urlopen(link[0], timeout=30) as page:
            assert page.status == 200
        assert list((tmp_path / "tmp").glob("shoal-studio-*"))
    finally:
        started.send_signal(sign)
        code = started.wait(60)
        started.stderr.close()
    assert code == 0
    assert not list((tmp_path / "tmp").glob("shoal-studio-*"))
