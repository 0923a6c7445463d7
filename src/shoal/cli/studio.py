"""``shoal studio``."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.terminal import say
from shoal.core.errors import UsageError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def studio(
    data: str | None = None,
    *,
    address: str = "127.0.0.1:0",
    largest: str = "2GB",
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
) -> None:
    """The whole job in a browser: look at data, say what columns give away, promise, choose, release.

    For one person on their own machine: the page is reached by a link that works once, nothing is loaded from
    elsewhere, and uploads are wiped when it stops (Ctrl-C). Needs the extra `web`.

    Examples: `shoal studio`; `shoal studio patients.csv`; `shoal studio env:CLINIC#patients`.

    Parameters
    ----------
    data
        A file (`book.xlsx#visits` is a sheet) or a table of a database (`env:CLINIC#patients`) to open at once,
        where it lies, without a copy; files can be dropped on the page, too.
    address
        Where it listens, `host:port`; any free port of this machine if not given.
    largest
        The largest upload, for example 500MB.
    browser
        Open the page in the browser, where there is one.
    """
    from shoal.runtime.kafka.serve.metrics import address_of
    from shoal.web.server import is_loopback, run

    host, port = address_of(address)
    if not is_loopback(host):
        say("warning: others in the network can reach this address, and what you look at travels unencrypted")

    def ready(link: str) -> None:
        say(f"open this link, it works once: {link}\nCtrl-C stops it and wipes what was uploaded")
        if browser:
            import webbrowser

            webbrowser.open(link)

    run(data, host, port, size_of(largest), ready)


def size_of(text: str) -> int:
    """A number of bytes as it was typed.

    >>> size_of("2GB"), size_of("500 MB")
    (2147483648, 524288000)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([KMG]?)B?\s*", text, re.I)
    if found is None or not int(found[1]):
        raise UsageError("expected a size", where="--largest", hint="for example 500MB or 2GB")
    return int(found[1]) * UNITS[found[2].upper()]
