"""When `apply` asks for a word: never for an unchanged policy or one that shows less, over random policies."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.policy.load import parse
from shoal.runtime.provision.widening import seen_by_role, widened

COLUMNS = {
    "time": "{role: time, late: 5s}",
    "pid": "{role: subject, type: str}",
    "age": "{role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}",
    "domain": "{role: quasi, type: str, hierarchy: {use: path, depth: 3}}",
    "diag": "{role: sensitive, type: str}",
    "note": "{role: plain, type: str}",
}
MASKS = [
    "suppress",
    "{use: blur, first: 1}",
    "[{use: blur}, {use: suppress}]",
    "{use: substitute, map: {a: b, c: d}, default: e}",
]
NIGHT = "{days: [mon, tue], from: '22:00', to: '23:30'%s}"


@st.composite
def promised(draw: st.DrawFn) -> dict:
    """The promises of a view by name with their number, and a method that can keep them."""
    kind = draw(st.sampled_from(["none", "z", "groups"]))
    if kind == "none":
        return {"promises": {}, "method": ""}
    if kind == "z":
        windows = draw(st.sampled_from(["", f", windows: [{NIGHT % ', window: 2h'}], zone: 1h"]))
        method = draw(
            st.sampled_from(
                [
                    "z-anonymity",
                    "{use: z-anonymity, floors: [%s]}" % (NIGHT % ", z: 40"),
                    "{use: z-anonymity, tune: {goal: {k: 2, probability: 0.8}, every: 10s}}",
                    "{use: z-anonymity, noise: {most: 0.5}, allow_noise: true}",
                ]
            )
        )
        return {
            "promises": {f"{{use: z-anonymity, window: 1h{windows}, z: %d}}": draw(st.integers(2, 50))},
            "method": method,
        }
    promises = {"{use: k-anonymity, k: %d}": draw(st.integers(2, 20))}
    if draw(st.booleans()):
        promises["{use: l-diversity, column: diag, l: %d}"] = draw(st.integers(2, 5))
    return {"promises": promises, "method": draw(st.sampled_from(["{use: batches, delay: 50}", "castle"]))}


@st.composite
def views(draw: st.DrawFn) -> dict:
    """A few views, as parts that a test can take away one by one."""
    out = {}
    for role in draw(st.lists(st.sampled_from(["ward", "market", "research"]), min_size=1, unique=True)):
        made = draw(promised())
        free = ["domain", "note"] if made["promises"] else ["domain", "note", "age", "diag"]
        shown = draw(st.lists(st.sampled_from(free), unique=True))
        masks = {c: draw(st.sampled_from(MASKS)) for c in shown if c == "note" and draw(st.booleans())}
        users = draw(st.lists(st.sampled_from([f"{role}{n}" for n in range(4)]), unique=True))
        key = "drop" if made["promises"] else draw(st.sampled_from(["drop", "pseudonym"]))
        fixed = ["age", "diag"] if made["promises"] else []
        out[role] = {"show": [*shown, *fixed], "masks": masks, "users": users, "key": key, **made}
    return out


def seen(described: dict) -> dict:
    """What the roles of a policy with these views see."""
    lines = ["dataset: d", "source: {use: kafka, topic: t, brokers: nowhere}", "columns:"]
    lines += [f"  {name}: {said}" for name, said in COLUMNS.items()]
    lines.append("views:" if described else "views: {}")
    for role, view in described.items():
        lines += [f"  {role}:", f"    show: [{', '.join(view['show'])}]", f"    users: [{', '.join(view['users'])}]"]
        lines.append(f"    service: {{key: {view['key']}}}")
        lines.append("    masks: {{{}}}".format(", ".join(f"{c}: {m}" for c, m in view["masks"].items())))
        if view["promises"]:
            lines.append("    promises: [{}]".format(", ".join(p % n for p, n in view["promises"].items())))
            lines.append(f"    method: {view['method']}")
    return seen_by_role(parse("\n".join(lines)))


def applied(described: dict) -> dict:
    """As the audit topic gives it back."""
    return msgspec.json.decode(msgspec.json.encode(seen(described)))


@given(views())
def test_an_unchanged_policy_is_never_wider(described):
    assert widened(applied(described), seen(described)) == []


@given(views(), st.data())
def test_showing_less_never_needs_a_word(described, data):
    before = applied(described)
    role = data.draw(st.sampled_from(sorted(described)))
    view = described[role]
    less = {
        "users": {**view, "users": view["users"][1:]},
        "columns": {**view, "show": view["show"][1:] if view["show"][:1] not in (["age"], ["diag"]) else view["show"]},
        "key": {**view, "key": "drop"},
        "promises": {**view, "promises": {p: n + 1 for p, n in view["promises"].items()}},
    }
    less["columns"] = {
        **less["columns"],
        "masks": {c: m for c, m in view["masks"].items() if c in less["columns"]["show"]},
    }
    if not view["promises"] and {"age", "diag"} <= set(view["show"]):
        less["a first promise"] = {
            **view,
            "key": "drop",
            "promises": {"{use: k-anonymity, k: %d}": 3},
            "method": "castle",
        }
    for how, changed in less.items():
        assert widened(before, seen({**described, role: changed})) == [], how
    assert widened(before, seen({r: v for r, v in described.items() if r != role})) == []


@given(views(), st.data())
def test_showing_more_always_needs_one(described, data):
    before = applied(described)
    role = data.draw(st.sampled_from(sorted(described)))
    view = described[role]
    more = {"users": {**view, "users": [*view["users"], "stranger"]}}
    if "note" not in view["show"]:
        more["columns"] = {**view, "show": [*view["show"], "note"]}
    if view["masks"]:
        more["masks"] = {**view, "masks": {}}
    if view["promises"]:
        more["promises"] = {**view, "promises": {p: n - 1 for p, n in view["promises"].items()}}
    for how, changed in more.items():
        assert widened(before, seen({**described, role: changed})) != [], how
    assert widened({r: v for r, v in before.items() if r != role}, seen(described)) != []
