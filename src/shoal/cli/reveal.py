"""``shoal reveal``."""

from __future__ import annotations

from shoal.cli.terminal import answer, say


def reveal(policy: str, *, role: str, column: str, keys: str | None = None, audit: str | None = None) -> None:
    """Turn tokens back into values: tokens on standard input, one per line, values on standard output.

    Every call leaves an audit line: when, who, which role and column, how many; never a token or a value.
    Nothing is revealed before the line is written, and nothing at all if one token does not open.

    Example: `shoal reveal policy.yaml --role billing --column ins_no --audit audit.ndjson < tokens.txt`.

    Parameters
    ----------
    policy
        The policy that made the tokens.
    role
        The role whose view they come from.
    column
        The column they stood in.
    keys
        A key ring; without it SHOAL_KEYS and SHOAL_KEY_… say.
    audit
        Where the audit line is appended; standard error if not given.
    """
    import sys
    from pathlib import Path

    import msgspec

    from shoal.core.errors import UsageError
    from shoal.core.keys import KeyRing
    from shoal.core.originals import keep_apart
    from shoal.policy.load import load
    from shoal.views.role_view import RoleView

    view = RoleView.of(load(policy), role)
    if column not in view.masks or not view.masks[column].reversible:
        raise UsageError(f"the column {column!r} of {role!r} holds no tokens", where=f"views.{role}.masks")
    ring = KeyRing.load(Path(keys) if keys else None)
    keep_apart([audit], [policy])
    running = view.start(ring)[column]
    values: list[object] = []
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            try:
                values.append(running.reveal(line.strip()))
            except UsageError as error:
                _audit(audit, role, column, number, "refused")
                raise UsageError(error.message, where=f"token {number}", hint=error.hint) from None
    _audit(audit, role, column, len(values), "revealed")
    for value in values:
        answer(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _audit(path: str | None, role: str, column: str, count: int, what: str) -> None:
    import datetime
    from pathlib import Path

    import msgspec

    from shoal.core.account import account
    from shoal.core.errors import OutputError

    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = msgspec.json.encode(
        {"at": now, "user": account(), "what": what, "role": role, "column": column, "tokens": count}
    )
    if path is None:
        say(f"audit: {line.decode()}")
        return
    try:
        with Path(path).open("ab") as out:
            out.write(line + b"\n")
    except OSError as error:
        raise OutputError(
            f"the audit line cannot be written ({error.strerror}); nothing is revealed", where=path
        ) from None
