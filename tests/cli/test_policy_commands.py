"""view, explain, check, keys, reveal: what they do, and every way a policy can be wrong (exit 2, nothing written)."""

from __future__ import annotations

import io
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hospital"


@pytest.fixture
def shoal(tmp_path, monkeypatch, capfd):
    """As the shared fixture, but inside this process: starting forty of them would take minutes."""

    def run(*words: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin or ""))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(words)
        out = capfd.readouterr()
        return subprocess.CompletedProcess(words, int(stopped.value.code or 0), out.out, out.err)

    return run


@pytest.fixture(autouse=True)
def hospital(tmp_path, monkeypatch):
    for name in ("SHOAL_KEYS", "SHOAL_KEY", "SHOAL_KEY_BILLING"):
        monkeypatch.delenv(name, raising=False)
    for name in ("policy.yaml", "patients.csv"):
        shutil.copy(EXAMPLE / name, tmp_path / name)


def test_a_nurse_sees_the_view_of_a_nurse(shoal):
    done = shoal("view", "policy.yaml", "--role", "nurse", "patients.csv", "--keep-order")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "*,F. Ott,*,M,28,TK,*,E10,22.1,*,Insulin"
    assert "6 of 6 rows" in done.stderr


def test_a_view_with_promises_is_verified_and_its_file_can_be_judged_again(shoal, tmp_path):
    done = shoal("view", "policy.yaml", "--role", "research", "patients.csv", "-o", "research.csv")
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stderr
    again = shoal("verify", "research.csv", "--policy", "policy.yaml", "--view", "research")
    assert again.returncode == 0, again.stderr


def test_a_process_of_its_own_does_the_same(tmp_path):
    words = [sys.executable, "-m", "shoal", "view", "policy.yaml", "--role", "nurse", "patients.csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "F. Ott" in done.stdout


def test_dry_run_writes_nothing(shoal, tmp_path):
    done = shoal("view", "policy.yaml", "--role", "nurse", "patients.csv", "-o", "nurse.csv", "--dry-run")
    assert done.returncode == 0
    assert not (tmp_path / "nurse.csv").exists()


def test_tokens_are_made_revealed_and_audited(shoal, tmp_path):
    assert shoal("keys", "new", "billing", "--ring", "keys.json").returncode == 0
    made = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keep-order", "--keys", "keys.json")
    tokens = [line.split(",")[6] for line in made.stdout.splitlines()[1:]]
    assert all(t.startswith("t1.") for t in tokens)
    assert shoal("keys", "rotate", "billing", "--ring", "keys.json").returncode == 0
    words = ("reveal", "policy.yaml", "--role", "billing", "--column", "ins_no", "--audit", "audit.ndjson")
    done = shoal(*words, "--keys", "keys.json", stdin="\n".join(tokens))
    assert done.stdout.split() == ["K15489", "Y41271", "Z17291", "I79435", "Q29751", "J33921"]
    line = json.loads((tmp_path / "audit.ndjson").read_text())
    assert {"user", "at"} <= set(line)
    assert (line["what"], line["role"], line["column"], line["tokens"]) == ("revealed", "billing", "ins_no", 6)
    forgotten = shoal("keys", "forget", "billing", "--epoch", "1", "--ring", "keys.json")
    assert forgotten.returncode == 0
    done = shoal(*words, "--keys", "keys.json", stdin=tokens[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert "K15489" not in done.stderr
    assert len((tmp_path / "audit.ndjson").read_text().splitlines()) == 2, "a refusal is audited, too"


def test_a_wrong_key_reveals_nothing(shoal):
    shoal("keys", "new", "billing", "--ring", "a.json")
    shoal("keys", "new", "billing", "--ring", "b.json")
    made = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keys", "a.json").stdout
    token = made.splitlines()[1].split(",")[6]
    done = shoal("reveal", "policy.yaml", "--role", "billing", "--column", "ins_no", "--keys", "b.json", stdin=token)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another key" in done.stderr
    assert token not in done.stderr


def test_an_audit_that_cannot_be_written_reveals_nothing(shoal):
    shoal("keys", "new", "billing", "--ring", "a.json")
    made = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keys", "a.json").stdout
    token = made.splitlines()[1].split(",")[6]
    words = ("reveal", "policy.yaml", "--role", "billing", "--column", "ins_no", "--keys", "a.json")
    done = shoal(*words, "--audit", "no/such/folder/audit", stdin=token)
    assert (done.returncode, done.stdout) == (3, "")


def test_a_person_is_forgotten_from_the_command_line(shoal, tmp_path):
    policy = (tmp_path / "policy.yaml").read_text()
    vaulted = policy.replace("key: billing}", "key: billing, form: vault, vault: v.db}")
    (tmp_path / "policy.yaml").write_text(vaulted)
    shoal("keys", "new", "billing", "--ring", "k.json")
    made = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keep-order", "--keys", "k.json")
    tokens = [line.split(",")[6] for line in made.stdout.splitlines()[1:]]
    done = shoal("keys", "forget-person", "billing", "--vault", "v.db", "--ring", "k.json", stdin="1\n")
    assert "1 people, 2 rows deleted" in done.stderr
    words = ("reveal", "policy.yaml", "--role", "billing", "--column", "ins_no", "--keys", "k.json")
    assert shoal(*words, stdin=tokens[0]).returncode == 2
    assert shoal(*words, stdin=tokens[1]).stdout.strip() == "Y41271"


def test_a_list_of_people_from_windows_is_forgotten_and_unknown_people_are_told(shoal, tmp_path):
    policy = (tmp_path / "policy.yaml").read_text()
    vaulted = policy.replace("key: billing}", "key: billing, form: vault, vault: v.db}")
    (tmp_path / "policy.yaml").write_text(vaulted)
    shoal("keys", "new", "billing", "--ring", "k.json")
    shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keys", "k.json")
    words = ("keys", "forget-person", "billing", "--vault", "v.db", "--ring", "k.json")
    done = shoal(*words, stdin="\ufeff1\r\n2\r\n\r\n")
    assert "2 people, 4 rows deleted" in done.stderr
    assert done.returncode == 0
    again = shoal(*words, stdin="1\n3\n")
    assert "2 people, 2 rows deleted" in again.stderr
    assert "1 of 2 people are not in the vault" in again.stderr
    assert again.returncode == 3
    assert shoal(*words, stdin="\n").returncode == 3  # nobody named: nobody forgotten


def test_the_audit_names_the_account_not_what_the_environment_claims(shoal):
    shoal("keys", "new", "billing", "--ring", "a.json")
    made = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "--keys", "a.json").stdout
    words = ("reveal", "policy.yaml", "--role", "billing", "--column", "ins_no", "--keys", "a.json")
    claims = dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"), "somebody-else")
    done = shoal(*words, stdin=made.splitlines()[1].split(",")[6], **claims)
    audit = json.loads(done.stderr.partition("audit: ")[2])
    assert audit["user"] == pwd.getpwuid(os.getuid()).pw_name


def test_explain_is_a_table_of_columns_by_roles(shoal):
    done = shoal("explain", "policy.yaml", "--json")
    seen = json.loads(done.stdout)
    assert list(seen["views"]) == ["doctor", "nurse", "administration", "billing", "research"]
    assert seen["views"]["nurse"]["zip"]["text"] == "*"
    assert seen["views"]["billing"]["ins_no"]["reversible"] is True
    age = {"text": "generalized", "type": "str", "attack": "", "reversible": False, "links": ["doctor", "nurse"]}
    assert seen["views"]["research"]["age"] == age
    assert seen["views"]["billing"]["ins_no"]["links"] == []
    assert "⇄ age: doctor, nurse, research can compare it" in shoal("explain", "policy.yaml").stdout
    text = shoal("explain", "policy.yaml", "--attacks", COLUMNS="200")
    assert "billing.ins_no" in text.stdout
    assert "frequency" in text.stdout


def test_check_measures_what_roles_learn_together(shoal):
    shoal("keys", "new", "billing", "--ring", "k.json")
    words = ("check", "policy.yaml", "patients.csv", "--keys", "k.json")
    done = shoal(*words)
    assert done.returncode == 0
    assert "nurse + administration: 3 of 6 records linked exactly" in done.stdout
    assert "doctor + nurse: nothing new" in done.stdout
    assert shoal(*words, "--threshold", "0.4").returncode == 1
    found = json.loads(shoal(*words, "--json", "--together", "3").stdout)
    assert max(len(p["pool"]["roles"]) for p in found["pools"]) == 3
    for name in ("F. Ott", "K15489", "10969"):
        assert name not in done.stdout + done.stderr


def test_check_without_data_says_which_keys_are_missing(shoal):
    done = shoal("check", "policy.yaml")
    assert done.returncode == 0
    assert "'billing' is not available" in done.stderr


SHORT = "c2hvcnQ="
WRONG = {
    "unknown mask": ("{use: tokenize, key: billing}", "{use: tokenise}", "no mask called 'tokenise'"),
    "wrong type of a parameter": ("{use: tokenize, key: billing}", "{use: blur, first: many}", "Expected `int`"),
    "unknown parameter": ("{use: tokenize, key: billing}", "{use: blur, keep: 3}", "blur takes"),
    "out of range": ("{use: tokenize, key: billing}", "{use: blur, first: -1}", "must not be negative"),
    "mask on a missing column": ("masks: {ins_no:", "masks: {ins_nr:", "did you mean 'ins_no'?"),
    "mask on a hidden column": ("masks: {ins_no:", "masks: {name:", "masked but not shown"),
    "numbers expected": ("{use: tokenize, key: billing}", "{use: bucket}", "`width` or `edges`"),
    "regular expression": (
        "{use: tokenize, key: billing}",
        '{use: conditional, when: {matches: "(a)\\\\1"}, then: x}',
        "not accepted",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_a_wrong_policy_is_located_hinted_and_writes_nothing(shoal, tmp_path, name):
    old, new, word = WRONG[name]
    text = (tmp_path / "policy.yaml").read_text()
    assert old in text
    (tmp_path / "policy.yaml").write_text(text.replace(old, new))
    done = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "-o", "out.csv")
    assert done.returncode == 2, done.stderr
    assert word in done.stderr
    assert "views.billing" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    assert done.stdout == ""


def test_a_column_the_data_lack_is_an_error(shoal, tmp_path):
    data = (tmp_path / "patients.csv").read_text().replace("ins_no", "insurance")
    (tmp_path / "patients.csv").write_text(data)
    done = shoal("view", "policy.yaml", "--role", "administration", "patients.csv", "-o", "out.csv")
    assert done.returncode == 2
    assert "ins_no" in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("environment", "word"),
    [({}, "no key called 'billing'"), ({"SHOAL_KEY_BILLING": SHORT}, "too short"), ({"SHOAL_KEY_BILLING": "?"}, "hex")],
)
def test_a_missing_or_weak_key_is_an_error_with_a_hint(shoal, tmp_path, environment, word):
    done = shoal("view", "policy.yaml", "--role", "billing", "patients.csv", "-o", "out.csv", **environment)
    assert done.returncode == 2
    assert word in done.stderr
    assert "hint:" in done.stderr
    assert SHORT not in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_catastrophic_pattern_is_only_a_pattern(shoal, tmp_path):
    text = (tmp_path / "policy.yaml").read_text()
    mask = '{use: conditional, when: {column: med, matches: "^(([a-z])+.)+[A-Z]([a-z])+$"}, then: x}'
    (tmp_path / "policy.yaml").write_text(text.replace("{use: tokenize, key: billing}", mask))
    data = (tmp_path / "patients.csv").read_text().replace("Insulin", "a" * 5000)
    (tmp_path / "patients.csv").write_text(data)
    done = shoal("view", "policy.yaml", "--role", "billing", "patients.csv")
    assert done.returncode == 0, done.stderr


def test_keys_of_a_ring_are_listed_without_secrets(shoal, tmp_path):
    shoal("keys", "new", "billing", "--ring", "k.json")
    shoal("keys", "rotate", "billing", SHOAL_KEYS="k.json")
    done = shoal("keys", "list", "--ring", "k.json")
    assert len(done.stdout.splitlines()) == 2
    secret = json.loads((tmp_path / "k.json").read_text())["keys"]["billing"][0]["secret"]
    assert secret not in done.stdout
    for wrong in ("new billing", "rotate nobody", "forget billing", "forget billing --epoch 2"):
        assert shoal("keys", *wrong.split(), "--ring", "k.json").returncode == 2
