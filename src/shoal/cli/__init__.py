"""The command line: one short file per command; what it needs is loaded when it is called.

stdout is data, stderr is talk, ``-`` is stdio. Exit codes: 0 done, 1 promise not met, 2 bad policy or usage,
3 input or output failed.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from cyclopts import App, CycloptsError, Group

from shoal import __version__
from shoal.core.errors import PolicyError, ShoalError, UsageError
from shoal.core.originals import guarded
from shoal.core.passwords import without_passwords

HELP = """Hide in numbers: anonymize tables, time series and event streams, and prove every release.

A first look: `shoal demo`. A table of your own: `shoal init data.csv > policy.yaml`, read it, then
`shoal anonymize data.csv --policy policy.yaml --output released.csv`."""

# name: (module:function, group); its docstring is its help
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
COMMANDS: dict[str, tuple[str, str]] = {
    "anonymize": ("anonymize:anonymize", "Release"),
    "verify": ("verify:verify", "Release"),
    "view": ("view:view", "Release"),
    "stream": ("stream:stream", "Release"),
    "serve": ("serve:app", "Release"),
    "measure": ("measure:measure", "Judge"),
    "attack": ("attack:attack", "Judge"),
    "compare": ("compare:compare", "Judge"),
    "tune": ("tune:tune", "Judge"),
    "plan": ("plan:plan", "Judge"),
    "init": ("init:init", "Policy"),
    "check": ("check:check", "Policy"),
    "explain": ("explain:explain", "Policy"),
    "policy": ("policy:policy", "Policy"),
    "keys": ("keys:keys", "Policy"),
    "reveal": ("reveal:reveal", "Policy"),
    "generate": ("generate:generate", "Streams"),
    "connect": ("connect:app", "Streams"),
    "consume": ("consume:consume", "Streams"),
    "replay": ("replay:replay", "Streams"),
    "experiment": ("experiment:experiment", "Learn"),
    "demo": ("demo:demo", "Learn"),
    "warm": ("warm:warm", "Learn"),
    "studio": ("studio:studio", "Learn"),
}


def build(only: str | None = None) -> App:
    """The app with all commands, or with one: their files are light, but together they take a third of a small command.

    What they need is loaded when they run.
    """
    app = App(
        name="shoal",
        help=HELP,
        version=__version__,
        version_flags=["--version"],
        help_format="markdown",
        suppress_keyboard_interrupt=False,  # what it says and its exit code are ours, see main
    )
    groups = {name: Group.create_ordered(name) for name in dict.fromkeys(g for _, g in COMMANDS.values())}
    for name, (target, group) in COMMANDS.items() if only is None else [(only, COMMANDS[only])]:
        module, _, function = target.partition(":")
        found = getattr(import_module(f"shoal.cli.{module}"), function)
        if isinstance(found, App):
            found.group = groups[group]
            app.command(found)
        else:
            app.command(found, name=name, group=groups[group])
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    first = next(iter(sys.argv[1:] if arguments is None else arguments), None)
    app = build(first if first in COMMANDS else None)  # where none is named, all are shown, or the nearest is proposed
    try:
        with guarded(), stoppable():
            code = app(
                sys.argv[1:] if arguments is None else list(arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_int_as_exit_code_else_zero",
            )
        sys.stdout.flush()  # here, where a full disk or a closed pipe still has an answer
        sys.exit(code)
    except ShoalError as error:
        _say(str(error) if error.hint else f"{error}\n\nhint: {_fallback(error, arguments)}")
        sys.exit(error.exit_code)
    except CycloptsError as error:
        _say(f"{without_passwords(str(error))}\n\nhint: shoal {_command(arguments)}--help")
        sys.exit(2)
    except KeyboardInterrupt as stop:
        _say("stopped; nothing was written")
        sys.exit(128 + next((n for n in stop.args if isinstance(n, int)), signal.SIGINT))
    except BrokenPipeError:  # the reader of our output closed the pipe: no error
        _silence()
        sys.exit(0)
    except OSError as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        if error.errno not in NO_ROOM:
            _say(f"{_place(error)}\n\nhint: SHOAL_DEBUG=1 shows the traceback, which may quote data")
        else:
            _silence()  # or the interpreter would try to write the rest once more
            _say(f"the output cannot be written ({error.strerror})\n\nhint: what was written so far is incomplete")
        sys.exit(3)
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        _say(f"{_place(error)}\n\nhint: SHOAL_DEBUG=1 shows the traceback, which may quote data")
        sys.exit(3)


@contextmanager
def stoppable() -> Iterator[None]:
    """While the block runs, SIGTERM is an interruption like Ctrl-C: temporary files with rows are removed.

    >>> with stoppable():
    ...     signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    False
    """
    signs = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    free = [sign for sign in signs if signal.getsignal(sign) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        free = []

    def stop(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    for sign in free:
        signal.signal(sign, stop)
    try:
        yield
    finally:
        for sign in free:
            signal.signal(sign, signal.SIG_DFL)


def _fallback(error: ShoalError, arguments: Sequence[str] | None) -> str:
    """What to look at next, for an error without a hint of its own."""
    if isinstance(error, PolicyError):
        return "`shoal policy schema` prints all that a policy may say"
    if isinstance(error, UsageError):
        return f"`shoal {_command(arguments)}--help` says what it takes"
    return "check that the file exists, that you may read it, and that it is complete"


def _silence() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: Exception) -> str:
    """Where an unexpected error came from; its own message is not shown, because it could quote a person."""
    trace = error.__traceback__
    where = "shoal"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("shoal"):
            where = f"{module}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"{where}: an unexpected {type(error).__name__}: this is a defect, please report it"


def _command(arguments: Sequence[str] | None) -> str:
    words = list(sys.argv[1:] if arguments is None else arguments)
    return f"{words[0]} " if words and words[0] in COMMANDS else ""


def _say(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
