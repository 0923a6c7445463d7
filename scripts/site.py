"""A hook of mkdocs: pages made from the program itself, and pages that live beside the docs.

Every promise, method, mask and hierarchy has a section made from its own docstring, so none can be missing.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {"SECURITY.md": "limits.md", "CHANGELOG.md": "changes.md", "ARCHITECTURE.md": "architecture.md"}
FOLDERS = {"methods": "reference/methods.md", "decisions": "decisions/0001-boxes-of-codes.md"}
DOCTEST = re.compile(r"^( *)>>> ", re.M)


def families() -> dict[str, tuple[str, str, list[Any]]]:
    """The page, its title, and the families whose members stand on it."""
    from shoal.core.hierarchy import HIERARCHIES
    from shoal.masks import MASKS
    from shoal.promises import PROMISES
    from shoal.series import PATTERNS, SERIES_METHODS
    from shoal.streams import STREAM_METHODS
    from shoal.tables import TABLE_METHODS

    return {
        "promises": ("Promises", "What must hold of a release: `promises:` of a view.", [PROMISES]),
        "methods": (
            "Methods and patterns",
            "How a release is made: `method:` of a view.",
            [TABLE_METHODS, STREAM_METHODS, SERIES_METHODS, PATTERNS],
        ),
        "masks": ("Masks", "Value in, value out: `masks:` of a view.", [MASKS]),
        "hierarchies": ("Hierarchies", "How a value becomes less precise: `hierarchy:` of a column.", [HIERARCHIES]),
    }


def member(name: str, kind: Any) -> str:
    """One member: its docstring, its parameters with their defaults."""
    text = inspect.getdoc(kind) or ""
    words, _, example = text.partition(">>> ")
    words = re.sub(r":(?:class|func|meth|mod):`~?([^`]+)`", lambda m: f"`{m[1].rpartition('.')[2]}`", words)
    words = words.replace("``", "`").strip()
    rows = [f"| `{f.name}` | {'needed' if f.required else f'`{_default(f)}`'} |" for f in msgspec.structs.fields(kind)]
    table = "\n".join(["| parameter | default |", "|---|---|", *rows]) if rows else "It has no parameters."
    shown = f"\n\n```pycon\n>>> {example.rstrip()}\n```" if example else ""
    return f"## {name}\n\n{words}\n\n{table}{shown}\n"


def _default(field: Any) -> str:
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return repr(value).replace("|", "\\|")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and those that live elsewhere."""
    for page, (title, about, listed) in families().items():
        parts = [f"# {title}\n\n{about} Made from the program's own words.\n"]
        for family in listed:
            parts += [member(name, family.get(name)) for name in family.names()]
        files.append(File.generated(config, f"reference/{page}.md", content="\n".join(parts)))
    for source, target in BESIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "examples.md", content=examples()))
    return files


def examples() -> str:
    """All examples on one page: their own words, one below the other."""
    parts = ["# Examples\n\nEach lies in `examples/` with its policy; the tests run every command.\n"]
    for file in sorted(ROOT.glob("examples/*/README.md")):
        text = re.sub(r"^(#+) ", r"#\1 ", file.read_text(), flags=re.M)
        parts.append(f"{text}\nFolder: `{file.parent.relative_to(ROOT)}`.\n")
    return "\n".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to what lies beside the docs to its page here; to what has none, leave the words."""
    up = "../" * page.file.src_uri.count("/")

    def led(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        name = re.sub(r"^(\.\./|docs/)+", "", path)
        if name in BESIDE:
            return f"[{words}]({up}{BESIDE[name]}{'#' + anchor if anchor else ''})"
        if name.rstrip("/") in FOLDERS:
            return f"[{words}]({up}{FOLDERS[name.rstrip('/')]})"
        if name == "docs" or (name == "README.md" and "docs" not in path and page.file.src_uri in BESIDE.values()):
            return f"[{words}]({up}README.md)"
        if path.startswith(("docs/", "examples/", "scripts/", "src/", "tests/")) or name.startswith(
            ("examples/", "scripts/", "src/", "tests/")
        ):
            if path.startswith("docs/"):
                return f"[{words}]({up}{name}{'#' + anchor if anchor else ''})"
            return f"[{words}]({up}examples.md)" if name.startswith("examples") else f"{words} (`{name}`)"
        if name in ("CONTRIBUTING.md", "LICENSE"):
            return f"{words} (`{name}`)"
        return found[0]

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", led, markdown)
