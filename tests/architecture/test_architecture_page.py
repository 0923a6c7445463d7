"""The page about the architecture says what is so: its picture is the contract, and what it names is there."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SOURCE = ROOT / "src" / "shoal"


def test_the_picture_of_the_layers_is_the_contract():
    picture = re.search(r"```text\n(.*?)```", PAGE, re.S)
    assert picture is not None
    drawn = [re.match(r"[a-z]+( \| [a-z]+)*", line) for line in picture[1].splitlines()]
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = contract["importlinter:contract:layers"]["layers"].replace("shoal.", "").split("\n")
    assert [line[0] for line in drawn if line] == [layer for layer in layers if layer]
    rooms = {p.stem for p in SOURCE.iterdir() if (p.is_dir() and p.name != "__pycache__") or p.suffix == ".py"}
    assert {room for layer in layers for room in layer.split(" | ") if room} == rooms - {"__init__", "__main__"}


def test_every_file_the_page_names_is_there():
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", PAGE))
    lacking = [
        name
        for name in named
        if not any((base / name).exists() for base in (ROOT, SOURCE, SOURCE / "runtime" / "kafka"))
        and not name.endswith("<name>.py")
    ]
    assert named
    assert not lacking
