"""Names in a policy are what is written there, whatever YAML takes the word for."""

from __future__ import annotations

import pytest

from shoal.core.errors import PolicyError
from shoal.policy.load import parse

NAMES = ("no", "yes", "on", "Off", "y", "true", "null", "~", "1e3", "0x10", "007", "2020-01-01", ".5")
WORDS = ("no", "yes", "on", "Off")  # a truth in YAML 1.1, texts in YAML 1.2
POLICY = """
dataset: x
columns:
  {name}: {{role: quasi}}
  age: {{role: quasi}}
views:
  v:
    show: [{shown}, age]
    promises: [{{use: k-anonymity, k: 2}}]
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_column_is_named_as_it_is_written(name):
    policy = parse(POLICY.format(name=name, shown=f"'{name}'"), "policy.yaml")
    assert policy.schema.quasi == [name, "age"]
    assert list(policy.views["v"].show) == [name, "age"]


@pytest.mark.parametrize("name", WORDS)
def test_words_of_agreement_are_names_in_a_list(name):
    assert list(parse(POLICY.format(name=name, shown=name), "policy.yaml").views["v"].show) == [name, "age"]


@pytest.mark.parametrize("shown", ["true", "null", "007", "1.50", "0x10"])
def test_what_yaml_reads_as_something_else_in_a_list_is_refused_with_its_line(shown):
    with pytest.raises(PolicyError, match=r"policy\.yaml, line 8: views\.v"):
        parse(POLICY.format(name=f"'{shown}'", shown=shown), "policy.yaml")


def test_a_yes_that_should_be_a_truth_is_refused_with_its_line():
    text = POLICY.format(name="zip", shown="zip") + "    method: {use: local, blind: yes}\n"
    with pytest.raises(PolicyError, match=r"policy\.yaml, line 10: views\.v\.method.*bool"):
        parse(text, "policy.yaml")


def test_a_key_that_is_no_name_is_refused_with_its_line():
    with pytest.raises(PolicyError, match=r"policy\.yaml, line 2.*a name is expected"):
        parse("dataset: x\n? [a, b]\n: 1\n", "policy.yaml")
