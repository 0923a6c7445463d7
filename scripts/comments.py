"""The share of lines that say why, by room: `python scripts/comments.py [files]`. Docstrings are not
counted, nor are marks for tools."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "shoal"
MARKS = ("noqa", "type: ignore", "fmt:")
NOTHING = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}


def counted(source: str) -> tuple[int, int]:
    """Lines of code and comments, and lines with a comment."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            prose |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    said: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not any(mark in token.string for mark in MARKS):
            said.add(token.start[0])
        elif token.type not in NOTHING:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len((code - prose) | said), len(said)


def main(by_file: bool) -> None:
    found: dict[str, tuple[int, int]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        inside = file.relative_to(SOURCE)
        name = str(inside) if by_file else inside.parts[0]
        lines, said = counted(file.read_text())
        before = found.get(name, (0, 0))
        found[name] = (before[0] + lines, before[1] + said)
    for name, (lines, said) in sorted(found.items(), key=lambda item: item[1][1] / max(1, item[1][0])):
        print(f"{name:<48}{lines:>7,}{said:>6,}{100 * said / max(1, lines):>7.1f} %")
    lines, said = (sum(pair[at] for pair in found.values()) for at in (0, 1))
    print(f"{'all':<48}{lines:>7,}{said:>6,}{100 * said / max(1, lines):>7.1f} %")


if __name__ == "__main__":
    main("files" in sys.argv[1:])
