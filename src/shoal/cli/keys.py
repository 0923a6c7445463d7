"""``shoal keys``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import MaybeWhole, answer, say
from shoal.core.errors import InputError, UsageError

Action = Literal["new", "rotate", "list", "forget", "forget-person"]


def keys(
    action: Action,
    name: str | None = None,
    *,
    ring: str | None = None,
    epoch: MaybeWhole = None,
    vault: Annotated[str | None, Parameter(name="--vault")] = None,
) -> None:
    """Make, rotate, list and forget keys; forget a person in a vault.

    Examples: `shoal keys new billing --ring keys.json`; `shoal keys rotate billing --ring keys.json`;
    `shoal keys list --ring keys.json`; `shoal keys forget billing --epoch 1 --ring keys.json`;
    `shoal keys forget-person billing --vault patients.db --ring keys.json < subjects.txt`.

    Parameters
    ----------
    action
        new, rotate, list, forget (an epoch), or forget-person (subjects on standard input, one per line).
    name
        Which key.
    ring
        The key ring's file; without it SHOAL_KEYS says where it is.
    epoch
        The epoch to forget. Nothing made with it can be revealed afterwards. The first epoch of a key also names the
        people in vaults: forget it last.
    vault
        The vault whose rows and salts of a person are deleted.
    """
    import os

    from shoal.core.keys import KeyRing

    only_with(action == "forget", "`keys forget`", epoch=epoch)
    only_with(action == "forget-person", "`keys forget-person`", vault=vault)
    if action == "list" and name is not None:
        raise UsageError("all keys of the ring are listed, and no name has an effect", where="keys list")
    path = Path(ring) if ring else Path(os.environ["SHOAL_KEYS"]) if os.environ.get("SHOAL_KEYS") else None
    if action == "list":
        _list(KeyRing.load(path))
        return
    if name is None:
        raise UsageError("which key?", where=f"keys {action}", hint=f"shoal keys {action} NAME --ring PATH")
    if action == "forget-person":
        _forget(KeyRing.load(path), name, vault)
        return
    if path is None:
        raise UsageError("which key ring?", where=f"keys {action}", hint="--ring PATH, or set SHOAL_KEYS")
    held = KeyRing.open(path) if path.exists() else KeyRing()
    if action == "new":
        held = held.new(name)
    elif action == "rotate":
        held = held.rotate(name)
    elif epoch is None:
        raise UsageError("which epoch?", where="keys forget", hint="--epoch NUMBER")
    else:
        held = held.forget(name, epoch)
    held.save(path)
    at = held.current(name)
    say(f"{name}: epoch {at}, check value {held.check(name, at)}, in {path}")


def _list(held: object) -> None:
    from shoal.core.keys import KeyRing

    assert isinstance(held, KeyRing)
    for name in sorted(held.keys):
        for at in held.epochs(name):
            answer(f"{name}\tepoch {at}\tcheck {held.check(name, at)}{'  current' if at == held.current(name) else ''}")


def _forget(held: object, name: str, vault: str | None) -> None:
    import sys

    from shoal.core.keys import KeyRing
    from shoal.core.vault import Vault
    from shoal.masks.base import Context
    from shoal.masks.pseudonym import Pseudonym

    assert isinstance(held, KeyRing)
    if vault is None or not Path(vault).exists():
        raise UsageError("which vault?", where="keys forget-person", hint="--vault PATH of an existing vault")
    opened, mask, context = Vault(Path(vault)), Pseudonym(key=name), Context(keys=held)
    # a file from Windows ends its lines by CR LF and may begin with a mark: neither is part of a person's name
    subjects = (line.lstrip("\ufeff").rstrip("\r\n") for line in sys.stdin)
    deleted = [opened.forget(mask.person(context, subject)) for subject in subjects if subject.strip()]
    opened.close()
    say(f"{len(deleted):,} people, {sum(deleted):,} rows deleted")
    unknown = deleted.count(0)
    if unknown or not deleted:
        raise InputError(
            f"{unknown:,} of {len(deleted):,} people are not in the vault: nothing of them was deleted",
            where="standard input",
            hint="one subject per line, exactly as in the data; is this the key and the vault they were masked with?",
        )
