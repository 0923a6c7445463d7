"""Names of sources and targets as messages may have them: a person may write a password into any of them.

What is no address we know, as ``mysql://…`` or ``host=… password=…``, is named in the error that says so. So every
error takes its words through :func:`without_passwords`, and nobody who raises one has to think of it.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "…"
# user:password@ behind :// (or behind a scheme alone), up to the last @; without an @, whatever is no port
LOGIN = re.compile(r"(://[^\s:/?#@]*|(?<!\S)[\w+.-]+:[^\s:/?#@]*):.*@")
NO_PORT = re.compile(r"(://[^\s:/?#@\[\]]*):(?!\d{1,5}(?![\w%]))[^\s/?#,;)\"']+")
# of a query or of a list of settings; blanks may stand around the sign, and the value in quotes
KEY = re.compile(r"([\w.%-]+)\s*=\s*")
VALUE = re.compile(r"'(?:[^'\\]|\\.)*'?|\"[^\"]*\"?|[^&\s]+")


def is_secret(key: str) -> bool:
    """Whether a setting of this name is a password, however the name is written.

    >>> is_secret("sslpassword"), is_secret("pass%77ord"), is_secret("sslmode")
    (True, True, False)
    """
    return any(word in unquote(key).lower() for word in ("password", "passwd", "pwd"))


def without_passwords(text: str) -> str:
    """A text without what stands in the place of a password.

    >>> without_passwords("mysql://ana:secret@db/clinic?sslpassword=x"), without_passwords("host=db password='a b' user=u")
    ('mysql://ana@db/clinic?sslpassword=…', 'host=db password=… user=u')
    >>> without_passwords("http://localhost:8081/subjects")
    'http://localhost:8081/subjects'
    """  # noqa: E501 - both in one line
    if ":" in text:
        text = NO_PORT.sub(r"\1", LOGIN.sub(r"\1@", text))
    at = 0
    while found := KEY.search(text, at):
        at = found.end()
        value = VALUE.match(text, at) if is_secret(found[1]) else None
        if value is not None:
            text = text[:at] + HIDDEN + text[value.end() :]
    return text
