"""Read off the source: nobody asks which promise or hierarchy it is, and what is public shows how it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import shoal

SOURCE = Path(shoal.__file__).parent
FAMILIES = ("core/hierarchy", "promises", "masks", "tables", "streams", "series")
ASKERS = ("release", "cli", "runtime", "views", "policy")
# series methods know k and P, so that another promise about curves is refused by its name;
# and whether somebody gave a spec or its parameters is no question of which one
ALLOWED = {("release/curves.py", "KPAnonymity"), ("release/methods.py", "Perturb")}
# rooms whose names others call; commands, services, pages and compiled loops are called by nobody's code but theirs
CALLED = ("api.py", "verifier.py", "connect", "core", "datasets", "measures", "policy", "release", "report", "testing",
          "views", *FAMILIES[1:])  # fmt: skip
PUBLIC = 0.95  # of the names that another room calls have an example: some need a broker, or a service, to be shown
SHARE = 0.55  # of all, those that only their own room uses included


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def nodes(file: Path) -> list[ast.AST]:
    """All of a file, without what only says how a name is used: that is half of them."""
    found, left = [], [parsed(file)]
    while left:
        node = left.pop()
        found.append(node)
        left += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
    return found


def trees(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        at = SOURCE / room
        for file in [at] if at.suffix else sorted(at.rglob("*.py")):
            yield str(file.relative_to(SOURCE)), parsed(file)


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


def room_of(module: str) -> str:
    first = module.split(".")[1]
    return first if (SOURCE / first).is_dir() else f"{first}.py"


def used_elsewhere() -> set[tuple[str, str]]:
    """(module, name) of what is called from another room: this is what "public" means inside the package."""
    found: set[tuple[str, str]] = set()
    for file in SOURCE.rglob("*.py"):
        here, modules = file.relative_to(SOURCE).parts[0], {}
        for node in nodes(file):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal"):
                for alias in node.names:
                    place = SOURCE.parent / Path(*(node.module or "").split(".")) / f"{alias.name}.py"
                    if place.is_file():
                        modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    elif node.module != "shoal" and room_of(node.module or "") != here:
                        found.add((node.module or "", alias.name))
        for node in nodes(file):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                module = modules[node.value.id]
                if room_of(module) != here:
                    found.add((module, node.attr))
    return found


def lacking(public: set[tuple[str, str]] | None) -> tuple[int, list[str]]:
    """How many names there are (of these, or all), and which have no example."""
    count, without = 0, []
    for file, tree in trees(*CALLED):
        module = "shoal." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for node in tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                continue
            if public is None or (module, node.name) in public:
                count += 1
                without += [] if shows(node) else [f"{file}: {node.name}"]
    return count, without


def test_what_another_room_calls_has_an_example():
    count, without = lacking(used_elsewhere())
    assert count > 300
    assert 1 - len(without) / count >= PUBLIC, "\n".join(without)


def test_most_other_names_have_examples():
    count, without = lacking(None)
    assert 1 - len(without) / count >= SHARE, "\n".join(without)


def test_the_laws_for_plug_ins_have_examples():
    import shoal.testing

    assert not [n for n in shoal.testing.__all__ if ">>>" not in (getattr(shoal.testing, n).__doc__ or "")]
