"""Read off the source: nobody asks which promise or hierarchy it is, and what is public shows how it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import shoal

SOURCE = Path(shoal.__file__).parent
FAMILIES = ("core/hierarchy", "promises", "masks", "tables", "streams", "series")
ASKERS = ("release", "cli", "runtime", "views", "policy")
# series methods know k and P, so that another promise about curves is refused by its name;
# and whether somebody gave a spec or its parameters is no question of which one
ALLOWED = {("release/curves.py", "KPAnonymity"), ("release/methods.py", "Perturb")}
# of these, examples are asked: whoever uses Shoal from Python or writes a plug-in meets them
SHARE = 0.5  # of them; what only other modules of the same room use may do without
SHOWN = ("api.py", "policy", "views", "release", "testing", *FAMILIES)


def trees(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        at = SOURCE / room
        for file in [at] if at.suffix else sorted(at.rglob("*.py")):
            yield str(file.relative_to(SOURCE)), ast.parse(file.read_text())


def specs() -> dict[str, ast.ClassDef]:
    """The members of the families: classes with a tag."""
    return {
        node.name: node
        for _, tree in trees(*FAMILIES)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(k.arg == "tag" for k in node.keywords)
    }


def test_who_runs_or_releases_asks_no_spec_which_one_it_is():
    named = set(specs())
    found = set()
    for file, tree in trees(*ASKERS):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                found |= {(file, name) for name in asked & named}
    assert found <= ALLOWED, "ask an attribute of the spec instead (`promise.about`, `method.groups`, …)"


def shows(node: ast.AST) -> bool:
    return ">>>" in (ast.get_docstring(node) or "")  # type: ignore[arg-type]


def defined(name: str) -> ast.AST:
    """Where a name of the package is defined."""
    thing = getattr(shoal, name)
    tree = ast.parse((SOURCE.parent / Path(*thing.__module__.split("."))).with_suffix(".py").read_text())
    return next(n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == thing.__name__)


def test_every_name_of_shoal_has_an_example():
    lacking = [n for n in shoal.__all__ if hasattr(getattr(shoal, n), "__module__") and not shows(defined(n))]
    assert not lacking


def test_every_member_of_a_family_has_an_example():
    assert not [name for name, node in specs().items() if not shows(node)]


def test_what_is_public_has_examples():
    lacking, all_of_them = [], 0
    for file, tree in trees(*SHOWN):
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                all_of_them += 1
                lacking += [] if shows(node) else [f"{file}: {node.name}"]
    share = 1 - len(lacking) / all_of_them
    assert share >= SHARE, "\n".join(lacking)
