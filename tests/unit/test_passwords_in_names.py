"""A password that a person wrote into the name of a source or a target stands in no message."""

from __future__ import annotations

import pytest

from shoal.connect.sql import Address, is_address
from shoal.core.errors import InputError, UsageError
from shoal.core.passwords import without_passwords
from tests.cli.in_process import call

NAMES = [
    "mysql://a:hunter2@h/d#t",
    "mysql://a:hunter2/b#c?d@h/d#t",
    "mysql://a:hunter2 hunter2@h",
    "mysql://a:b@hunter2@h",
    "mysql://:hunter2@h",
    "mysql://a:hunter2",
    "POSTGRESQL://shoal:hunter2@h/d#t",
    "Postgres://shoal@h/d?Password=hunter2#t",
    "postgresql:shoal:hunter2@h/d#t",
    "postgresql://shoal@h/d?sslmode=require&sslpassword=hunter2#t",
    "postgresql://shoal@h/d?pass%77ord=hunter2#t",
    "postgresql://shoal@h/d?password=%68unter2hunter2#t",
    "jdbc:postgresql://h/d?user=a&password=hunter2",
    "host=h password=hunter2",
    "host=h password = 'hunter2 hunter2' user=a",
    r"host=h password='a\' hunter2' user=a",
    "Server=h;PWD=hunter2",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_error_names_it(name):
    error = InputError(f"{name} cannot be read", where=name, hint=f"try {name}")
    for text in (str(error), error.message, error.where, error.hint, repr(error), *map(str, error.args)):
        assert "hunter2" not in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["source", "target", "policy"])
def test_no_command_says_it(name, place, tmp_path):
    (tmp_path / "t.csv").write_text("age\n20\n21\n")
    words = {
        "source": ["anonymize", name, "--quasi", "age", "--k", "2", "-o", "r.csv"],
        "target": ["anonymize", "t.csv", "--quasi", "age", "--k", "2", "-o", name],
        "policy": ["verify", name, "--policy", name],
    }[place]
    done = call(words, tmp_path, None, {})
    assert done.returncode in (2, 3), done.stderr
    assert "hint:" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}


def test_a_password_in_an_address_is_refused_however_it_is_written():
    for name in (n for n in NAMES if n.lower().startswith("postgres")):
        assert is_address(name)
        with pytest.raises(UsageError, match="password on the command line") as caught:
            Address.of(name)
        assert "env:VARIABLE" in str(caught.value)


def test_what_is_no_password_stays(monkeypatch):
    plain = "postgresql://ana@db:5432/clinic?sslmode=require&options=-csearch_path%3Dward&application_name="
    assert Address.of(f"{plain}#t").shown == f"{plain}#t"
    assert Address.of("POSTGRESQL://ana@db/clinic#t").url == "postgresql://ana@db/clinic"
    for name in (plain, "http://[::1]:8081/x?a=b", "http://h:9092,b:9092", "k=5, l=2", "views.a.masks: x@y", "a:b.csv"):
        assert without_passwords(name) == name
    monkeypatch.setenv("CLINIC", "postgresql://ana:hunter2@db/clinic")
    assert Address.of("env:CLINIC#t").url == "postgresql://ana:hunter2@db/clinic"  # the driver needs it
