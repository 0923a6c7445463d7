"""The house rules: layers, cheap imports, file lengths, documents that run, a wheel that works alone."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import shoal
from tests.cli.in_process import call

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/**/*.md")])
GUIDE = ROOT / "docs/how-to/kafka-guide.md"  # tests/kafka/test_guide.py runs it, on a broker
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(shoal.__path__, "shoal.")
    if ".kernels" not in m.name and "__main__" not in m.name
)
# papers are named by their authors and year; a seed is where random numbers start
PAPER_AS_SEED = re.compile(
    r"(?i)seed[ _]00\d|as in the seed\b|\bthe seed (says|names|writes)|def test_00\d_|seed's (table|figure|mode)"
)
HEAVY = {
    "numba",
    "polars",
    "numpy",
    "pandas",
    "pyarrow",
    "matplotlib",
    "altair",
    "confluent_kafka",
    "pyspark",
    "cryptography",
}


@pytest.mark.parametrize("words", [["-c", "import shoal"], ["-m", "shoal", "--help"]], ids=["import", "help"])
def test_looking_at_shoal_loads_nothing_heavy(words):
    program = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert not loaded & HEAVY


def test_imports_go_down_only():
    lint = Path(sys.executable).parent / "lint-imports"
    if not lint.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([str(lint), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_short_bytes_are_sought_in_what_may_be_sealed():
    """Three given bytes stand in a megabyte of sealed state by chance once in sixteen runs: marks are longer."""
    short = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"""b["'].* not in """, text := path.read_text())  # the others need not be parsed
        for claim in ast.walk(ast.parse(text))
        if isinstance(claim, ast.Assert)
        for node in ast.walk(claim)
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.NotIn)
        and isinstance(node.left, ast.Constant)
        and isinstance(node.left.value, bytes)
        and len(node.left.value) < 6
    ]
    assert not short


def test_what_is_sorted_says_what_ties_do():
    # numpy's default orders ties as the processor's vector instructions do: other machines, other data or groups
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(getattr(node, "func", None), "attr", None)
            kinds = [getattr(k.value, "value", None) for k in getattr(node, "keywords", ()) if k.arg == "kind"]
            if name in ("argsort", "argpartition") and kinds not in (["stable"], ["mergesort"]):
                found.append(f"{file.relative_to(ROOT)}, line {node.lineno}")
    assert not found


def test_files_stay_small():
    long = {
        str(p.relative_to(ROOT)): n
        for p in (ROOT / "src").rglob("*.py")
        if (n := len(p.read_text().splitlines())) > 400
    }
    assert not long


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/concepts/threat-model.md", "docs/concepts/attack-rounds.md"])
def test_claims_about_security_name_tests_that_exist(page):
    text = (ROOT / page).read_text()
    tests = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", text))
    assert page != "SECURITY.md" or len(named) >= 15
    assert not [name for name in named if f"def {name}(" not in tests]
    assert not [path for path in re.findall(r"`(tests/[\w/]+\.py)`", text) if not (ROOT / path).is_file()]


def test_what_a_first_look_installs_is_part_of_what_the_tests_install():
    """Two locks: in another version of a package a demo would show what no test has seen."""

    def pinned(name: str) -> set[str]:
        text = re.sub(
            r" ;.*?(?= \\)", "", (ROOT / name).read_text()
        )  # on which system: the two may word it differently
        return set(re.findall(r"^[\w.-]+==.*?(?=^[\w.-]+==|\Z)", text, re.M | re.S))

    few, all_ = pinned("requirements.base.lock"), pinned("requirements.lock")
    assert 10 < len(few) < len(all_)
    assert few <= all_
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    names = {re.match(r"[\w.-]+", pin)[0] for pin in few}
    assert {re.match(r"[\w.-]+", word)[0] for word in needed} <= names


OUTSIDE = (  # what is true of other programs, or of nothing that could be run
    "Anonymization is a promise",
    "- **Differential privacy is not offered.**",
    "[Masks](",
    "Who sees what",
    "- **The broker and its administrators**",
    "What the operator must protect",
    "| what | because |",
    "|---|",
    "| the source topic, and the worker's machine |",
    "Please report",
)


def test_every_claim_about_security_names_a_test():
    """A claim is a paragraph, a point of a list, or a row of a table."""
    text = re.sub(r"^#.*$", "", (ROOT / "SECURITY.md").read_text(), flags=re.M)
    claims = [claim.strip() for claim in re.split(r"\n\s*\n|\n(?=- |\|)", text) if claim.strip()]
    bare = [claim for claim in claims if not re.search(r"`test_\w+`|`tests/[\w/]+\.py`", claim)]
    assert not [claim[:80] for claim in bare if not claim.startswith(OUTSIDE)]
    assert {start for start in OUTSIDE if any(claim.startswith(start) for claim in bare)} == set(OUTSIDE)


def test_every_name_of_shoal_is_there():
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    with pytest.raises(AttributeError):
        _ = shoal.nothing


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert failed == 0


@pytest.mark.parametrize("page", [p for p in PAGES if p != GUIDE], ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_in_documents_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|console|sh)\n(.*?)^```", page.read_text(), re.M | re.S)
    names: dict[str, object] = {"__name__": "document"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
        elif language == "console":  # lines that start with "$ shoal" are run; what follows is for the eye
            for line in re.findall(r"^\$ shoal (.*)$", text, re.M):
                words = shlex.split(line)
                assert not set(words) & set("|<>;&"), "no shell runs it here: a process for each line costs two seconds"
                done = call(words, tmp_path)
                assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_links_in_documents_lead_somewhere():
    broken = []
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def test_the_reference_is_what_the_program_says():
    done = subprocess.run(
        [sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_nothing_speaks_of_machines_or_makers():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    here = str(ROOT.parent) + "/"
    found = []
    for name in listed:
        path = ROOT / name
        if path.suffix in {".png", ".gz", ".parquet"} or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if here in text or "pypi.org" in text or "/root/" in text or PAPER_AS_SEED.search(text):
            found.append(name)
    assert found in ([], ["tests/architecture/test_house.py"])


@pytest.mark.slow
def test_a_wheel_installs_alone_and_runs_the_demo(tmp_path):
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(tmp_path),
            str(ROOT),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(next(tmp_path.glob("shoal-*.whl"))) as wheel:
        wheel.extractall(site)
    needs = needed("shoal") - {"shoal"}
    assert not needs & {"pandas", "pyarrow", "playwright", "pytest", "confluent-kafka"}
    for name in needs:  # what it declares to need, and nothing else
        files = importlib.metadata.distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (site / top).symlink_to(importlib.metadata.distribution(name).locate_file(top))
    few = [
        python,
        "-m",
        "shoal",
        "demo",
        "--rows",
        "30",
    ]  # without compiling: that is tested elsewhere, and takes a minute
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(few, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").is_file()


def needed(name: str, extra: str = "") -> set[str]:
    """A distribution and everything it declares to need here, by name."""
    out = {name}
    for line in importlib.metadata.requires(name) or []:
        asked = Requirement(line)
        if asked.marker is None or asked.marker.evaluate({"extra": extra}):
            for wanted in asked.extras or {""}:
                out |= needed(canonicalize_name(asked.name), wanted)
    return out
