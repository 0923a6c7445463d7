"""A bounded share of the soak run, kills are in `test_chaos`; with SHOAL_LONG=1 each blow that one broker can take."""

from __future__ import annotations

import os

import pytest
from soak import BLOWS, PARTITIONS, Soak, policy_of
from stage import Stage

pytestmark = [pytest.mark.system, pytest.mark.slow]
WHOLE = os.environ.get("SHOAL_LONG") == "1"
SHARE = [kind for kind in BLOWS if kind != "broker"] if WHOLE else ["apply", "offsets", "pause"]


def test_blows_of_every_kind_are_said_and_change_nothing(cluster, tmp_path):
    stage = Stage(cluster, tmp_path, policy_of(0), PARTITIONS)
    try:
        soak = Soak(stage, seed=5, burst=400, workers=1)
        assert not soak.run(SHARE, until=0.0)
        assert set(SHARE) <= set(soak.blows)
    finally:
        stage.close()
