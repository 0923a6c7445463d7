"""A model that reads sentences, beside the patterns: Presidio, if it is installed (the extra ``text``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from shoal.core.errors import UsageError
from shoal.masks.detect import Found, Kind

Model = Literal["presidio"]
Ask = Callable[[str], list[Found] | None]
KIND: dict[str, Kind] = {
    "PERSON": "name",
    "NRP": "name",
    "EMAIL_ADDRESS": "mail",
    "PHONE_NUMBER": "phone",
    "IBAN_CODE": "iban",
    "CREDIT_CARD": "card",
    "DATE_TIME": "date",
    "LOCATION": "address",
}


def model(name: Model, language: str) -> Ask:
    """A function that asks the model, and answers nothing at all if it fails: then nobody knows what the text holds."""
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider
    except ImportError:
        raise UsageError(f"the model {name} is not installed", where="text", hint='pip install "shoal[text]"') from None
    spec = {"nlp_engine_name": "spacy", "models": [{"lang_code": language, "model_name": _installed(language)}]}
    engine = NlpEngineProvider(nlp_configuration=spec).create_engine()
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=[language])

    def ask(text: str) -> list[Found] | None:
        try:
            found = analyzer.analyze(text=text, language=language)
        except Exception:  # whatever it says might quote the text
            return None
        # what we have no name for is hidden all the same
        return [Found(r.start, r.end, KIND.get(r.entity_type, "id")) for r in found]

    return ask


def _installed(language: str) -> str:
    """The largest model at hand; nothing is fetched from elsewhere while a policy runs."""
    from spacy.util import is_package

    names = [f"{language}_core_{of}_{size}" for size in ("trf", "lg", "md", "sm") for of in ("web", "news")]
    for name in names:
        if is_package(name):
            return name
    hint = f"python -m spacy download {language}_core_{'web' if language in ('en', 'zh') else 'news'}_lg"
    raise UsageError(f"no model of spaCy for the language {language!r} is installed", where="text", hint=hint)


def together(text: str, found: Sequence[Found], more: Sequence[Found]) -> list[Found]:
    """Both findings; of what overlaps, the first keep theirs and the rest of the others is hidden beside it.

    >>> together("Dr Ott", [Found(3, 6, "name")], [Found(0, 6, "name")])
    [Found(start=0, end=2, kind='name'), Found(start=3, end=6, kind='name')]
    """
    taken = bytearray(len(text))
    for f in found:
        taken[f.start : f.end] = b"\1" * (f.end - f.start)
    out = list(found)
    for f in more:
        at = f.start
        while at < f.end:
            if taken[at] or text[at].isspace():
                at += 1
                continue
            end = at
            while end < f.end and not taken[end]:
                end += 1
            piece = text[at:end].rstrip()
            if any(c.isalnum() for c in piece):
                out.append(Found(at, at + len(piece), f.kind))
                taken[at : at + len(piece)] = b"\1" * len(piece)
            at = end
    return sorted(out)
