"""A first policy, guessed from data: every guess with its reason, for a person to read and correct.

It fails closed. What names people is never shown; what an outsider may know is generalized; a column that nobody
decided on is not shown until someone does, and the draft says so beside it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

from shoal.policy import hierarchies
from shoal.policy.content import IDENTIFYING, form_of
from shoal.policy.together import LATITUDE, LONGITUDE, nested, pairs
from shoal.policy.yaml import quoted

NAMING = re.compile(
    r"(^|_)(name|first_?name|last_?name|surname|forename|e?mail|phone|mobile|fax|tel|ssn|nin|tax|passport|licen[cs]e|address"
    r"|street|iban|account|card|ip|mac|imei|url|user_?name|login|ins_?no|insurance_?(no|number)|session|token|signature)(_|$)"
)
NUMBERING = re.compile(r"(^|_)(id|nbr|no|nr|num|number|key|uuid|guid|hash|ref|index|idx)$")
SUBJECT = re.compile(
    r"^(id|pid|uid|((patient|person|people|user|customer|client|subject|member|employee|visitor|citizen|student|respondent"
    r"|household|player|driver|passenger|donor)(_?(id|nbr|no|nr|num|number|key|hash|code))?))$"
)
SENSITIVE = re.compile(
    r"(^|_)(diag\w*|disease|illness|salary|income|wage|religion|orientation|verdict|hiv|condition|drug\w*|med|medication\w*"
    r"|debt|score)(_|$)"
)
KNOWN = re.compile(
    r"(^|_)(age|sex|gender|birth|born|dob|race|ethnic\w*|nation\w*|country|city|town|region|district|county|state|province|zip\w*"
    r"|postal\w*|postcode|plz|marital|education|occupation|job|profession|insurer|ins_co|workclass|language|height|weight"
    r"|relationship|admission\w*|discharge\w*)(_|$)"
)
PLACE = re.compile(r"(^|_)(zip\w*|postal\w*|plz|postcode)(_|$)")
TIME = re.compile(r"(^|_)(time|timestamp|ts|created|updated|date|datetime|when|epoch)(_|$)")
# 1973 to 2128 in each unit, so that no number is a time in two of them
EPOCHS = {"s": (1e8, 5e9), "ms": (1e11, 5e12), "us": (1e14, 5e15), "ns": (1e17, 5e18)}
NEAR_UNIQUE = 0.5  # different values per row above which a column names rows rather than describes them
FEW = 20  # rows: below, a share of different values says nothing
MOST_QUASI = 10  # together, more of them leave nothing of any


class Guess(NamedTuple):
    """One column's role and hierarchy, why, its type where the file does not tell it, and whether it is shown.

    ``question`` is what a person has to decide before the column may be shown. A column that is ``derive``d is made
    from the columns ``of``. ``decided``: a person said so.

    >>> Guess("quasi", "outsiders often know it").shown
    True
    """

    role: str
    why: str
    hierarchy: str | None = None
    type: str | None = None
    question: str | None = None
    derive: str | None = None
    of: tuple[str, ...] = ()
    decided: bool = False

    @property
    def shown(self) -> bool:
        """Whether the draft lists it under ``show``."""
        # nobody has judged what is merely plain: it is shown only after a person said so
        roles = ("quasi", "sensitive", "plain") if self.decided else ("quasi", "sensitive")
        return self.role in roles and self.question is None


def words(name: str) -> str:
    """A column's name as lower-case words: ``CustomerID`` and ``customer-id`` are ``customer_id``.

    >>> words("CustomerID"), words("Date of birth"), words("A1Cresult")
    ('customer_id', 'date_of_birth', 'a1_cresult')
    """
    # also before the last of several capitals: `HTTPServer` is two words
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"\W+", "_", parted).strip("_").lower()


def guesses(frame: pl.DataFrame) -> dict[str, Guess]:
    """A guess for every column; at most one subject, and no more quasi columns than leave something of each.

    >>> frame = pl.DataFrame({"pid": range(40), "sex": ["f", "m"] * 20})
    >>> {name: found.role for name, found in guesses(frame).items()}
    {'pid': 'subject', 'sex': 'quasi'}
    """
    found = {column.name: guess(column) for column in frame.iter_columns()}
    # a schema has one subject: a second id must neither count people nor be shown
    for extra in [n for n, g in found.items() if g.role == "subject"][1:]:
        found[extra] = Guess("identifier", "a second column that names people")
    if not any(g.role == "quasi" for g in found.values()):
        found |= _things(frame, found)
    found = _joined(frame, found)
    quasi = [n for n, g in found.items() if g.shown and g.role == "quasi"]
    for name in quasi[MOST_QUASI:]:
        asked = f"more than {MOST_QUASI} quasi columns leave little of any: show it instead of another?"
        found[name] = found[name]._replace(question=asked)
    return found


def guess(column: pl.Series) -> Guess:
    """The role of one column by its name, type, form and variety; no value is quoted.

    >>> guess(pl.Series("sex", ["f", "m"] * 20)).role
    'quasi'
    """
    name, known = words(column.name), column.drop_nulls()
    distinct, rows = known.n_unique() if not column.dtype.is_nested() else 0, len(known)
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        return Guess("identifier", "its cells have parts: declare the parts you need")
    if not rows:
        return Guess("plain", "it has no value", question="is it needed?")
    naming = _naming(column, name, distinct, rows)
    if naming is not None:
        return naming
    described = _described(column, name)
    if described is not None:
        return described
    # an age of a few people is nearly their own, and an interval of it is not
    is_known = column.dtype.is_numeric() and KNOWN.search(name) and not NUMBERING.search(name)
    if rows > FEW and distinct > NEAR_UNIQUE * rows and not is_known:
        return Guess("identifier", f"{distinct:,} different values in {rows:,} rows: it names rows, whatever it is")
    if SENSITIVE.search(name):
        return Guess("sensitive", "its name says that it is private")
    return _known(column, name, distinct)


def _naming(column: pl.Series, name: str, distinct: int, rows: int) -> Guess | None:
    """What names people, by name and by form."""
    # a column with one value for all counts nobody
    if SUBJECT.search(name) and (distinct > 1 or rows == 1):
        return Guess("subject", "its name says whose row it is: people are counted, and it is not shown")
    if NAMING.search(name):
        return Guess("identifier", "its name says that it names someone")
    form = form_of(column)
    if form in IDENTIFYING:
        return Guess("identifier", IDENTIFYING[form])
    # a number that many rows share is the number of a category, and names no row
    if NUMBERING.search(name) and rows > FEW and distinct > 0.1 * rows:
        return Guess("identifier", f"its name says that it numbers something; {distinct:,} different values")
    return None


def _described(column: pl.Series, name: str) -> Guess | None:
    """Dates, times, positions and paths: an outsider may know them, however many there are."""
    if column.dtype in (pl.Date, pl.Datetime):
        return Guess("quasi", "a date or a time: an outsider may know it", hierarchies.calendar(column.dtype))
    unit = _epoch(column) if TIME.search(name) else None
    if unit is not None:
        why = f"a time in {unit} since 1970: an outsider may know it"
        return Guess("quasi", why, hierarchies.calendar(pl.Datetime()), f"datetime, format: {unit}")
    if column.dtype.is_float() and (LATITUDE.search(name) or LONGITUDE.search(name)):
        more = "with the other coordinate it would be a place on a grid"
        return Guess("quasi", f"a position, published as an interval; {more}", hierarchies.span(column))
    form = form_of(column)
    if form == "position":
        return Guess("quasi", "positions, published as cells of a grid", hierarchies.GRID)
    if form in ("path", "domain"):
        return Guess("quasi", "paths, which lose their last step first", hierarchies.path(column, form == "domain"))
    if PLACE.search(name) and not column.dtype.is_float():
        return Guess("quasi", "a place: outsiders often know it", hierarchies.prefix(column), "str")
    return None


def _known(column: pl.Series, name: str, distinct: int) -> Guess:
    if form_of(column) == "dirty":
        asked = "some cells are no numbers: correct them, or declare what they are with type"
        return Guess("plain", f"mostly numbers; {distinct:,} different values", question=asked)
    if KNOWN.search(name):
        # the number of a category is near no other number
        fitting = "suppress" if NUMBERING.search(name) else hierarchies.natural(column)
        return Guess("quasi", f"outsiders often know it; {distinct:,} different values", fitting)
    return Guess(
        "plain",
        f"{distinct:,} different values",
        question="could an outsider know it (then quasi), must nobody learn it (sensitive), or neither (plain)?",
    )


def _joined(frame: pl.DataFrame, found: dict[str, Guess]) -> dict[str, Guess]:
    """Columns that are one thing together become one derived column, and are not shown by themselves."""
    quasi = [n for n, g in found.items() if g.shown and g.role == "quasi"]
    numbers = {n: words(n) for n in quasi if frame[n].dtype.is_float()}
    wholes = list(pairs(numbers, frame.columns, hierarchies.GRID))
    # only texts that would be suppressed whole: by a path they keep the steps above
    texts = [n for n in quasi if frame[n].dtype == pl.String and found[n].hierarchy == "suppress"]
    chain = nested(frame, texts, {n: quoted(n) for n in texts}) if frame.height > FEW else None
    for whole in [*wholes, *([chain] if chain is not None else [])]:
        derive = whole.derive
        if derive == "position":
            derive = f"{{use: position, of: [{', '.join(map(quoted, whole.of))}]}}"
        part = f"a part of {whole.name!r}, not shown by itself"
        # a part shown beside the whole would tell what the whole had to give up
        found = found | {n: Guess("identifier", part) for n in whole.of}
        found[whole.name] = Guess("quasi", whole.why, whole.hierarchy, derive=derive, of=whole.of)
    return found


def _things(frame: pl.DataFrame, found: dict[str, Guess]) -> dict[str, Guess]:
    """Events and ratings say what people did: without a better column, what they did is what an outsider knows."""
    if not any(g.role == "subject" for g in found.values()):
        return {}
    open_ones = [n for n, g in found.items() if g.question is not None and not frame[n].dtype.is_float()]
    why = "what someone did or used: an outsider may have seen it"
    return {n: Guess("quasi", why, hierarchies.natural(frame[n])) for n in open_ones}


def _epoch(column: pl.Series) -> str | None:
    """The unit in which whole numbers are times of the last decades."""
    if not column.dtype.is_integer():
        return None
    low, high = column.min(), column.max()
    for unit, (least, most) in EPOCHS.items():
        if isinstance(low, int) and isinstance(high, int) and least <= low and high <= most:
            return unit
    return None
