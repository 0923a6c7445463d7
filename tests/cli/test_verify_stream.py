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


def test_a_shown_time_is_judged_as_a_quasi_column(shoal, tmp_path):
    """Two people with one box and two times are told apart by whoever knows when each of them came."""
    age = "{role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}"
    columns = f"{{time: {{role: time, type: int}}, client: subject, age: {age}}}"
    view = "{show: [time, age], promises: [{use: k-anonymity, k: 2}], method: {use: batches, delay: 4}}"
    (tmp_path / "policy.yaml").write_text(f"columns: {columns}\nviews: {{v: {view}}}\n")
    rows = "\n".join(f"{10 * at},p{at},{20 + at % 4}" for at in range(12))
    (tmp_path / "events.csv").write_text(f"time,client,age\n{rows}\n")
    made = shoal("stream", "events.csv", "--policy", "policy.yaml", "-o", "good.csv")
    assert made.returncode == 0, made.stderr
    good = shoal("verify", "good.csv", "--policy", "policy.yaml")
    assert good.returncode == 0, good.stdout + good.stderr
    (tmp_path / "told.csv").write_text('time,age\n10,"[20, 23]"\n20,"[20, 23]"\n')
    told = shoal("verify", "told.csv", "--policy", "policy.yaml")
    assert told.returncode == 1, told.stdout + told.stderr
    assert "reached 1" in told.stdout
    view = view.replace(
        "use: batches", "use: castle"
    )  # no box is used again beside a time, unless somebody asks for it
    (tmp_path / "policy.yaml").write_text(f"columns: {columns}\nviews: {{v: {view}}}\n")
    assert shoal("stream", "events.csv", "--policy", "policy.yaml", "-o", "castle.csv").returncode == 0
    assert shoal("verify", "castle.csv", "--policy", "policy.yaml").returncode == 0
    view = view.replace("delay: 4", "delay: 4, reuse: forever")
    (tmp_path / "policy.yaml").write_text(f"columns: {columns}\nviews: {{v: {view}}}\n")
    for words in (("check", "policy.yaml"), ("verify", "good.csv", "--policy", "policy.yaml")):
        refused = shoal(*words)
        assert refused.returncode == 2, refused.stdout
        assert "the time column 'time' is shown" in refused.stderr
