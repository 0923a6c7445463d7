"""A released stream is verified beside its original, and never without it."""

from __future__ import annotations

POLICY = """
columns:
  time: {role: time, type: int}
  client: {role: subject, type: str}
  domain: {role: quasi, type: str, hierarchy: path}
views:
  market:
    show: [time, domain]
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
"""


def test_z_needs_the_original_and_a_forged_event_is_found(shoal, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "events.csv").write_text("time,client,domain\n0,ann,a.b\n10,bob,a.b\n20,eve,c.d\n")
    (tmp_path / "good.csv").write_text("time,domain\n10,a.b\n")
    (tmp_path / "forged.csv").write_text("time,domain\n10,a.b\n20,c.d\n")
    alone = shoal("verify", "good.csv", "--policy", "policy.yaml")
    assert alone.returncode == 2, alone.stderr
    assert "cannot be verified" in alone.stderr
    good = shoal("verify", "good.csv", "--policy", "policy.yaml", "--original", "events.csv")
    assert good.returncode == 0, good.stderr
    forged = shoal("verify", "forged.csv", "--policy", "policy.yaml", "--original", "events.csv")
    assert forged.returncode == 1, forged.stderr + forged.stdout


def test_z_is_verified_without_a_policy(shoal, tmp_path):
    (tmp_path / "events.csv").write_text("time,client,domain\n0,ann,a.b\n10,bob,a.b\n20,eve,a.c\n")
    (tmp_path / "good.csv").write_text("time,domain\n10,a.b\n20,a\n")
    (tmp_path / "forged.csv").write_text("time,domain\n10,a.b\n20,a.c\n")
    words = ("--quasi", "domain", "--subject", "client", "--hierarchy", "domain=path", "--z", "2")
    alone = shoal("verify", "good.csv", *words, "--window", "1h")
    assert alone.returncode == 2, alone.stderr
    assert "cannot be verified" in alone.stderr
    endless = shoal("verify", "good.csv", *words, "--original", "events.csv")
    assert endless.returncode == 2
    assert "--window" in endless.stderr
    good = shoal("verify", "good.csv", *words, "--window", "1h", "--original", "events.csv")
    assert good.returncode == 0, good.stderr
    forged = shoal("verify", "forged.csv", *words, "--window", "1h", "--original", "events.csv")
    assert forged.returncode == 1, forged.stderr + forged.stdout
    assert "eve" not in forged.stderr + forged.stdout
