"""A draft fails closed: what names people or nobody decided on is not shown; what is shown keeps its promise."""

from __future__ import annotations

import datetime as dt
import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.api import attack
from shoal.cli import main
from shoal.connect import files
from shoal.connect.files import read
from shoal.core.errors import InputError
from shoal.datasets.hospital import hospital
from shoal.datasets.series import sales_curves
from shoal.datasets.streams import stream
from shoal.policy.ask import asked
from shoal.policy.content import form_of
from shoal.policy.draft import suggest
from shoal.policy.load import load, parse
from shoal.policy.suggest import guess, guesses, words
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.release.job import job_of
from shoal.release.wishes import Wishes

ROWS = 300
DRAW = random.Random(11)


def luhn(number: int) -> int:
    """The number with the check digit of cards behind it."""
    digits = [int(d) for d in reversed(str(number))]
    total = sum(d if at % 2 else (2 * d - 9 if d > 4 else 2 * d) for at, d in enumerate(digits))
    return number * 10 + -total % 10


def iban() -> str:
    account = f"{DRAW.randint(0, 10**18 - 1):018}"
    return f"DE{98 - int(account + '131400') % 97:02}{account}"


def some(make: Callable[[], object]) -> pl.Series:
    return pl.Series("x", [make() for _ in range(ROWS)])


NAMES = ["Anna Berg", "J. Frost", "Maria Ruiz", "Ole Lund", "Ida von Eck", "Tom O'Neil"]
FORMS = {
    "mail": lambda: f"{DRAW.randint(1, 999)}.x@mail{DRAW.randint(1, 9)}.org",
    "phone": lambda: f"+49 30 {DRAW.randint(10**6, 10**7)}",
    "card": lambda: luhn(DRAW.randint(10**14, 10**15 - 1)),
    "iban": iban,
    "ip": lambda: f"10.{DRAW.randint(0, 255)}.{DRAW.randint(0, 255)}.1",
    "uuid": lambda: f"{DRAW.getrandbits(128):032x}",
    "web": lambda: f"https://x.org/{DRAW.randint(1, 999)}",
    "name": lambda: f"{DRAW.choice(NAMES)} {chr(65 + DRAW.randint(0, 25))}.",
    "text": lambda: f"seen on the {DRAW.randint(1, 28)}th by the neighbour of the patient",
    "position": lambda: f"{DRAW.uniform(40, 41):.4f},{DRAW.uniform(-75, -73):.4f}",
    "domain": lambda: f"{DRAW.choice(['www', 'mail', 'a', 'b'])}.x{DRAW.randint(1, 99)}.{DRAW.choice(['org', 'com'])}",
    "path": lambda: f"{DRAW.choice(['toys', 'tools'])}.{DRAW.choice('abc')}{DRAW.randint(1, 99)}.n{DRAW.randint(1, 9)}",
    "code": lambda: f"E{DRAW.randint(10, 99)}",
    "dirty": lambda: DRAW.choice(["34", "35", "41", "52", "about 30"]),
    None: lambda: DRAW.choice(["red", "green", "blue"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_recognised(form):
    assert form_of(some(FORMS[form])) == form


@pytest.mark.parametrize("form", ["mail", "phone", "card", "iban", "ip", "uuid", "web", "name", "text"])
def test_what_names_people_by_its_form_is_an_identifier_whatever_it_is_called(form):
    found = guess(some(FORMS[form]))
    assert found.role == "identifier"
    assert not found.shown


NUMBERS = {
    "unique whole numbers": pl.Series("encounter", np.random.default_rng(1).permutation(ROWS) + 10**6),
    "three of four different": pl.Series("v", [n // 4 * 3 + min(n % 4, 2) for n in range(ROWS)]),
    "unique floats": pl.Series("v", np.random.default_rng(2).random(ROWS)),
    "unique texts": pl.Series("v", [f"k{n}" for n in range(ROWS)]),
    "unique long numbers": pl.Series("v", [10**25 + n for n in range(ROWS)], dtype=pl.Int128),
    "a session of twenty rows": pl.Series("session_id", [n // 5 for n in range(ROWS)]),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_a_column_that_names_rows_is_an_identifier_of_any_type(case):
    assert guess(NUMBERS[case]).role == "identifier"


def test_names_are_read_in_any_spelling():
    for name in ("CustomerID", "customer-id", "Customer Id", "customer_id", "patient_nbr", "PatientNbr", "user"):
        assert guess(pl.Series(name, [1, 2, 2])).role == "subject", name
    assert words("hoursPerWeek") == "hours_per_week"


HIERARCHIES = {
    "age": (pl.Series([18, 93]), "{use: range, min: 10, max: 100}"),
    "weight": (pl.Series([48.25, 48.75] * 30), "{use: range, min: 48.2, max: 48.8}"),
    "birth": (pl.Series([dt.date(1990, 1, 2)]), "{use: calendar, levels: [day, month, year, decade]}"),
    "seen": (pl.Series([dt.datetime(2020, 1, 2, 3)]), "{use: calendar, levels: [hour, day, month, year, decade]}"),
    "zip": (pl.Series([10115, 20095]), "{use: prefix, length: 5}"),
    "lat": (pl.Series([40.71, 40.79]), "{use: range, min: 40.71, max: 40.79}"),
    "timestamp": (pl.Series([1577836800, 1577836900]), "{use: calendar, levels: [hour, day, month, year, decade]}"),
    "category": (some(FORMS["path"]), "path"),
    "page": (some(FORMS["domain"]), "{use: path, reverse: true}"),
    "where": (some(FORMS["position"]), "{use: grid, sizes: [100, 1000, 10000, 100000]}"),
}


@pytest.mark.parametrize("name", HIERARCHIES)
def test_hierarchies_are_real(name):
    column, hierarchy = HIERARCHIES[name]
    found = guess(column.alias(name))
    assert (found.role, found.hierarchy) == ("quasi", hierarchy)


def test_a_column_nobody_decided_on_is_hidden_and_asked_about():
    draft = suggest(pl.DataFrame({"age": [30, 30, 41], "glucose": [1.0, 2.0, 2.0]}), "t", k=2)
    assert parse(draft.text).views["research"].show == ("age",)
    assert draft.questions == ["glucose"]
    assert "HIDDEN until you decide" in next(line for line in draft.text.splitlines() if "glucose:" in line)


def test_positions_and_ratings_have_something_an_outsider_knows():
    rng = np.random.default_rng(3)
    ratings = pl.DataFrame(
        {"user": rng.integers(0, 50, ROWS), "movie": rng.integers(0, 20, ROWS), "stars": rng.random(ROWS)}
    )
    assert guesses(ratings)["movie"].role == "quasi"
    places = pl.DataFrame({"user": [1] * ROWS, "lat": rng.random(ROWS), "lon": rng.random(ROWS)})
    assert {n for n, g in guesses(places).items() if g.role == "quasi"} == {"position"}


def test_a_file_without_a_header_is_refused_without_its_values():
    with pytest.raises(InputError, match="look like values") as caught:
        suggest(pl.DataFrame({"Mrs Secret": ["x"], "1977-03-04": ["y"], "54": ["z"]}), "t")
    assert "Secret" not in str(caught.value)


def test_a_draft_quotes_no_value():
    frame = pl.DataFrame(
        {name: ["Ahl-Brook-1977", "Ahl-Brook-1978", "Ahl-Brook-1977"] * 10 for name in ("a", "zip", "diag", "age")}
    )
    draft = suggest(frame, "t")
    assert "Brook" not in draft.text + draft.word


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
COLUMN = st.sampled_from([TEXT, st.integers(), st.floats(), st.dates(), st.datetimes(), st.booleans()])
TITLES = st.sampled_from(
    [
        "no",
        "yes",
        "null",
        "a.b",
        "x [kg]",
        "a: b",
        "#",
        "é",
        "'",
        '"',
        "\n",
        "1e3x",
        "~",
        "\U0001f41f",
        "a\u2028b\x85",
        "\\",
        "age",
        "zip",
        "ts",
        "id",
    ]
)


@settings(max_examples=60)
@given(st.dictionaries(TITLES, COLUMN, min_size=1, max_size=4).flatmap(
    lambda kinds: st.fixed_dictionaries({n: st.lists(k | st.none(), min_size=3, max_size=3) for n, k in kinds.items()})
))  # fmt: skip
def test_every_draft_is_a_policy_whose_hidden_columns_are_not_shown(columns):
    if list(columns) == ["\n"]:  # as of a file without a header line
        with pytest.raises(InputError, match="look like values"):
            suggest(pl.DataFrame(columns, strict=False), "t")
        return
    draft = suggest(pl.DataFrame(columns, strict=False), "t")
    policy = parse(draft.text)
    assert list(policy.schema.columns) == list(columns)
    view = policy.views["research"]
    assert view.hidden == "drop"
    for name, column in policy.schema.columns.items():
        assert not (column.role in ("subject", "identifier", "plain", "time") and name in view.show)
        assert not (name in draft.questions and name in view.show)


def test_a_name_of_a_column_writes_no_policy():
    name = "zip\nviews: {all: {show: [zip]}}\n"
    draft = suggest(pl.DataFrame({name: [1, 2, 3], "age": [30, 31, 32]}), "t")
    assert list(parse(draft.text).views) == ["research"]
    assert list(parse(draft.text).schema.columns) == [name, "age"]


# from draft to release without an edit
REAL = (
    "adult/adult_full.csv.gz",
    "diabetes_130us/diabetic_data.csv.gz",
    "ecommerce_events/ecommerce_oct2019_first_3h.parquet",
    "gowalla_nyc/checkins.parquet",
    "gowalla_nyc/venues.parquet",
    "network_domains/dns_queries.parquet",
    "news_facebook/facebook_palestine.csv.gz",
    "online_retail/online_retail.parquet",
    "sales_weekly/sales_transactions_weekly.csv.gz",
)
MADE = {
    "patients": lambda: hospital(600, seed=4, visits=2),
    "curves": lambda: sales_curves(80, 12),
    "positions": lambda: stream("positions", 0.001),
    "purchases": lambda: stream("ecommerce", 0.001),
}


def released(frame: pl.DataFrame, folder: Path, kind: str) -> None:
    """Every column that leaves is generalized or sensitive, and the verifier finds the promise kept."""
    file, policy = str(folder / f"data.{kind}"), str(folder / "policy.yaml")
    files.write(frame, file)
    draft = suggest(files.read(file), "data", k=3)
    Path(policy).write_text(draft.text)
    loaded = load(policy)
    view = loaded.views["research"]
    curves = any(isinstance(p, KPAnonymity) for p in view.promises)
    job = job_of(Wishes({"policy": loaded, "view": "research", "method": None if curves else "mondrian"}))
    made = job.run(read(file, types=dict(job.types), exact=job.exact))
    assert made.report.verified
    if curves:
        assert not set(made.data.columns) & set(loaded.schema.of("identifier", "subject"))
        return
    shown = set(made.data.columns)
    assert shown
    known = [n for n in loaded.schema.quasi if n in shown and loaded.schema[n].derive is None]
    for on in [known, *([name] for name in known)]:  # the adversary: everything an outsider knows, and each alone
        found = attack(made.data, read(file, types=dict(job.types)), on, schema=loaded.schema) if on else None
        assert found is None or found.unique == 0, on
    assert shown <= {n for n, c in loaded.schema.columns.items() if c.role in ("quasi", "sensitive")}
    assert not shown & set(draft.questions)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", MADE)
def test_a_draft_of_invented_data_is_released_as_it_is(tmp_path, name, kind):
    released(MADE[name](), tmp_path, kind)


@pytest.mark.parametrize("name", REAL)
def test_a_draft_of_real_data_is_released_as_it_is(shared, tmp_path, name):
    file = shared / "data" / name
    frame = pl.read_parquet(file) if name.endswith("parquet") else pl.read_csv(file, infer_schema=False)
    released(frame.head(1_500), tmp_path, "parquet" if name.endswith("parquet") else "csv")


def test_coordinates_are_a_place_on_a_grid_and_nested_columns_a_path():
    rng = np.random.default_rng(5)
    cities = rng.integers(0, 12, ROWS)
    frame = pl.DataFrame(
        {
            "pickup_lat": rng.uniform(40, 41, ROWS),
            "pickup_lng": rng.uniform(-74, -73, ROWS),
            "city": [f"c{n}" for n in cities],
            "region": [f"r{n // 3}" for n in cities],
            "country": [f"l{n // 6}" for n in cities],
            "sex": rng.choice(["f", "m"], ROWS),
        }
    )
    draft = suggest(frame, "trips", k=3)
    policy = parse(draft.text)
    assert policy.views["research"].show == ("sex", "pickup_position", "city_path")
    assert policy.schema["city_path"].derive.of == ("country", "region", "city")
    made = job_of(Wishes({"policy": policy, "view": "research", "method": "mondrian"})).run(frame)
    assert made.report.verified
    assert made.data.columns == ["sex", "pickup_position", "city_path"]
    assert any(text.count(".") == 1 for text in made.data["city_path"])
    assert "rows are alone with their sex, pickup_lat, pickup_lng, country, region, city" in draft.word


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=30, max_size=60))
def test_a_path_is_proposed_only_where_every_value_lies_in_one(pairs_of):
    frame = pl.DataFrame({"city": [f"c{a}" for a, _ in pairs_of], "region": [f"r{b}" for _, b in pairs_of]})
    inside = len({*pairs_of}) == len({a for a, _ in pairs_of})
    if "city_path" in guesses(frame):
        assert inside or len({*pairs_of}) == len({b for _, b in pairs_of})


ANSWERS = "q\nwhat\np\n\n"


def test_guesses_are_gone_through_with_a_preview(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text("shoe,colour,age\n" + "41,red,30\n42,blue,31\n41,red,30\n" * 10)
    monkeypatch.setattr("sys.stdin", io.StringIO(ANSWERS))
    with pytest.raises(SystemExit) as stop:
        main(["init", str(tmp_path / "t.csv"), "--ask", "--k", "2", "-o", str(tmp_path / "p.yaml")])
    assert not stop.value.code
    said = capsys.readouterr().err
    assert "1 of 3  shoe: hidden" in said
    assert "now 41 → " in said
    assert said.count("Enter keeps it") == 2, "an answer that is none is asked again"
    assert "30 → [" in said
    policy = load(str(tmp_path / "p.yaml"))
    assert {n: c.role for n, c in policy.schema.columns.items()} == {"shoe": "quasi", "colour": "plain", "age": "quasi"}
    assert policy.views["research"].show == ("shoe", "colour", "age")
    assert "red" not in (tmp_path / "p.yaml").read_text()


def test_without_answers_the_guesses_stay(tmp_path, monkeypatch):
    frame = pl.DataFrame({"shoe": [41, 42] * 20, "age": [30, 31] * 20})
    assert asked(frame, guesses(frame), lambda: "", lambda words: None) == guesses(frame)
