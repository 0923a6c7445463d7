"""Only the command that is named is loaded: it answers as it does among all of them."""

from __future__ import annotations

import pytest

import shoal.cli
from shoal.cli import COMMANDS, build, main

OTHERS = (["--help"], ["verfy"], [], ["--version"], ["serve", "plan", "--help"])


@pytest.mark.parametrize("words", [[name, word] for name in COMMANDS for word in ("--help", "--bogus")] + [*OTHERS])
def test_a_command_alone_answers_as_among_all(words, monkeypatch, capsys):
    answers = []
    for made in (build, lambda only: build()):
        monkeypatch.setattr(shoal.cli, "build", made)
        with pytest.raises(SystemExit) as done:
            main(words)
        answers.append((done.value.code, capsys.readouterr()))
    assert answers[0] == answers[1]


def test_other_commands_are_not_loaded():
    assert "verify" in build("verify")
    assert "warm" not in build("verify")
