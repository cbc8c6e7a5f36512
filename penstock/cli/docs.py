"""The page about the commands, made from the commands: `python -m penstock.cli.docs > docs/cli.md`."""

from __future__ import annotations

import inspect
from typing import Any

import typer

INTRODUCTION = """# The command line

`penstock` comes with the package; `python -m penstock` is the same. Where a pipeline is asked for, name a file of
Python that has one in a variable (`team_scores.py`), say which where it has several (`jobs.py:hourly`), or name an
importable module (`jobs:hourly`).

| exit code | means |
|---|---|
| 0 | it ended, or was stopped by Ctrl-C or SIGTERM |
| 1 | it was refused, it failed, or it could use no row of a source; what, why and what to write instead are on stderr |
| 2 | the command itself is wrong: an unknown option, a missing argument |

| variable | does |
|---|---|
| `PENSTOCK_DEBUG=1` | shows a traceback with every error |
| `PENSTOCK_LOG=spark.log` | keeps what Spark prints in a file; `-` lets it onto the screen |
| `PENSTOCK_MASTER` | Spark's master where no session is there and `--master` does not say |

This page is made from the commands by `python -m penstock.cli.docs`, and a test compares the two.
"""


def reference() -> str:
    """The whole page."""
    from penstock.cli.commands import app

    commands = typer.main.get_command(app)
    parts = [INTRODUCTION]
    for name, command in commands.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        parts += [_section(f"{name} {one}", held) for one, held in inner.items()] or [_section(name, command)]
    return "\n".join(parts)


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    usage = " ".join(["penstock", name, *[_usage(one) for one in arguments], *(["[OPTIONS]"] if options else [])])
    lines = [f"## penstock {name}", "", f"```sh\n{usage}\n```", "", *_paragraphs(command.help or ""), ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| `{one.metavar or one.name.upper()}` | {_cell(one.help)} |" for one in arguments]
    lines += [f"| {_option(one)} | {_cell(one.help)}{_default(one)} |" for one in options]
    return "\n".join([*lines, "", inspect.cleandoc(command.epilog or ""), ""])


def _usage(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    word = word if " " in word else word.strip("[]")
    return word if argument.required else f"[{word}]"


def _paragraphs(text: str) -> list[str]:
    return [line.rstrip() for line in inspect.cleandoc(text).splitlines()]


def _option(one: Any) -> str:
    names = ", ".join(f"`{name}`" for name in one.opts)
    return f"{names} `{_cell(one.metavar)}`" if one.metavar else names


def _default(one: Any) -> str:
    return "" if one.default in (None, False) or callable(one.default) else f" Default: `{one.default}`."


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
