"""Input that grows when it is read, or is nested without end, ends in an error that says so; so do objects as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.connect.files import read
from shoal.core.errors import InputError, PolicyError, UsageError
from shoal.core.schema import Column, Schema
from shoal.policy.yaml import DEEPEST, parse
from shoal.streams import STREAM_METHODS
from shoal.testing.masks import fixed_ring
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView


def test_aliases_of_aliases_are_counted():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(PolicyError, match="counting what aliases stand for"):
        parse("\n".join(lines), "policy.yaml")


EXAMPLES = Path(__file__).parents[2] / "examples"
ENDLESS = ["a: &a [*a]", "[" * 60 + "]" * 60, "[" * 5000 + "]" * 5000, "[" * 300_000, "- " * 50_000, "{a: " * 50_000]


@pytest.mark.parametrize("text", ENDLESS, ids=range(len(ENDLESS)))
def test_a_policy_without_end_is_refused(text):
    with pytest.raises(PolicyError, match=f"deeper than {DEEPEST} levels"):
        parse(text, "policy.yaml")


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("shown", [["a"], ["b"]])
def test_a_record_nested_deeply_is_refused_or_skipped(depth, shown):
    schema = Schema({"a": Column("plain"), "b": Column("plain")})
    views = RecordGate([RoleView.resolve("r", schema, shown)], fixed_ring())
    made = views.many([b'{"b": 1, "a": ' + b"[" * depth + b"]" * depth + b"}", b'{"a": 1, "b": 1}'])
    assert len(made.views[0]) + len(made.refused) == 2
    assert len(made.views[0]) >= 1
    assert "[" not in b"".join(made.views[0]).decode()


@pytest.mark.parametrize("odd", [{"name": "Zoe"}, ["Zoe"], [[]]])
def test_a_file_with_objects_beside_texts_is_refused(tmp_path, odd):
    path = tmp_path / "in.ndjson"
    path.write_text("".join(json.dumps({"a": v}) + "\n" for v in ("[20, 29]", "{x", odd)))
    with pytest.raises(InputError) as caught:
        read(str(path))
    assert "Zoe" not in str(caught.value)
    path.write_text('{"a": "[20, 29]"}\n\n{"a": "{x"}\n')
    assert read(str(path))["a"].to_list() == ["[20, 29]", "{x"]


def test_sticky_and_noise_contradict_each_other():
    noise = {"noise": {"most": 0.25}, "allow_noise": True}
    STREAM_METHODS.decode({"use": "z-anonymity", **noise})
    with pytest.raises(UsageError, match="sticky"):
        STREAM_METHODS.decode({"use": "z-anonymity", "sticky": True, **noise})


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda file: file.parent.name + "/" + file.name)
def test_a_policy_reads_alike_with_libyaml_and_without(monkeypatch, file):
    text = file.read_text()
    data, places = parse(text, "policy.yaml")
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    plain, lines = parse(text, "policy.yaml")
    assert (data, places.lines) == (plain, lines.lines)
