"""The command line: one short file per command, loaded when it is called.

stdout is data, stderr is talk, ``-`` is stdio. Exit codes: 0 done, 1 promise not met, 2 bad policy or usage,
3 input or output failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group

from shoal import __version__
from shoal.core.errors import ShoalError

HELP = """Hide in numbers: anonymize tables, time series and event streams, and prove every release.

A first look: `shoal demo`. A table of your own: `shoal init data.csv > policy.yaml`, read it, then
`shoal anonymize data.csv --policy policy.yaml --output released.csv`."""

# name: (module:function, group, one line)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "anonymize": ("anonymize:anonymize", "Release", "A table in, a verified release and a report out."),
    "verify": ("verify:verify", "Release", "Judge released data against promises, independently."),
    "view": ("view:view", "Release", "One role's view of a file."),
    "stream": ("stream:stream", "Release", "Events in, anonymized events out, with zero or bounded delay."),
    "serve": ("serve:app", "Release", "Role views as a service on Kafka."),
    "measure": ("measure:measure", "Judge", "How risky a table is, and which k, l and t it reaches as it stands."),
    "attack": ("attack:attack", "Judge", "Join a release with a register: whom does it find?"),
    "compare": ("compare:compare", "Judge", "Methods and parameters side by side: loss against risk."),
    "plan": ("plan:plan", "Judge", "What z buys: the probability that z-anonymity gives k-anonymity."),
    "init": ("init:init", "Policy", "Draft a policy from data: roles and hierarchies guessed, to be read."),
    "check": ("check:check", "Policy", "Is the policy safe? Also what roles learn together."),
    "explain": ("explain:explain", "Policy", "A table of what each role sees."),
    "policy": ("policy:policy", "Policy", "The JSON Schema of policies, for editors."),
    "keys": ("keys:keys", "Policy", "Make and rotate keys."),
    "reveal": ("reveal:reveal", "Policy", "Tokens back to values, with an audit line."),
    "experiment": ("experiment:experiment", "Learn", "The tables and figures of the papers, again."),
    "demo": ("demo:demo", "Learn", "A tour that needs nothing but this package."),
}


def build() -> App:
    """The app with all commands; none of them is loaded yet."""
    app = App(name="shoal", help=HELP, version=__version__, version_flags=["--version"], help_format="markdown")
    groups = {name: Group.create_ordered(name) for name in dict.fromkeys(g for _, g, _ in COMMANDS.values())}
    for name, (target, group, line) in COMMANDS.items():
        app.command(f"shoal.cli.{target}", name=name, group=groups[group], help=line)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    app = build()
    try:
        sys.exit(
            app(
                sys.argv[1:] if arguments is None else list(arguments),
                exit_on_error=False,
                print_error=False,
                result_action="return_int_as_exit_code_else_zero",
            )
        )
    except ShoalError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except CycloptsError as error:
        _say(f"{error}\n\nhint: shoal {_command(arguments)}--help")
        sys.exit(2)
    except KeyboardInterrupt:
        _say("stopped; nothing was written")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone: that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("SHOAL_DEBUG"):
            raise
        _say(f"{_place(error)}\n\nhint: SHOAL_DEBUG=1 shows the traceback, which may quote data")
        sys.exit(3)


def _place(error: Exception) -> str:
    """Where an error nobody foresaw came from: its own message could quote a person."""
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
