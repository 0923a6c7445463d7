"""Every stream method can be warmed up before a worker joins its group, whatever the view promises."""

from __future__ import annotations

import pytest

from shoal.policy.load import parse
from shoal.runtime.warm import warm
from shoal.streams import STREAM_METHODS

GROUPS = "[{use: k-anonymity, k: 5}, {use: l-diversity, l: 2, column: diag}]"
PROMISES = {
    "z-anonymity": "[{use: z-anonymity, z: 5, window: 1h}]",
    "curves": "[{use: kP-anonymity, k: 4, p: 2}]",
}

POLICY = """
dataset: patients
columns:
  time: {{role: time}}
  pid:  {{role: subject}}
  zip:  {{role: quasi, hierarchy: {{use: prefix, length: 5}}}}
  diag: {{role: sensitive}}
views:
  role: {{show: [zip, diag], promises: {promises}, method: {method}}}
  plain: {{show: [zip]}}
"""


@pytest.mark.parametrize("method", STREAM_METHODS.names())
def test_every_method_runs_over_invented_events(method):
    policy = parse(POLICY.format(promises=PROMISES.get(method, GROUPS), method=method), "policy.yaml")
    assert warm(policy.views["role"])
    assert warm(policy.views["plain"])


def test_what_refuses_is_left_cold():
    policy = parse(POLICY.format(promises="[{use: k-anonymity, k: 5}]", method="{use: batches, delay: 2}"), "p.yaml")
    assert not warm(policy.views["role"])  # a delay shorter than k can keep nothing
