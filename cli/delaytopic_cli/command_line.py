"""Command lines: subcommands imported late, one clear line for each error, and text of others made harmless."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

import click

from delaytopic_api.errors import ApiError
from delaytopic_cli.errors import CliError, InputError

INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are named as `module:attribute`."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, str], **kwargs: Any) -> None:
        """`lazy_commands` maps the command's name to where it is."""
        super().__init__(*args, **kwargs)
        self._lazy_commands = dict(lazy_commands)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were given: the order of use."""
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or None for an unknown name."""
        place = self._lazy_commands.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


def run_group(group: click.Group, arguments: list[str] | None, program: str) -> int:
    """Run it; errors become one line each on standard error. Returns the exit code."""
    try:
        result = group.main(arguments, prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CliError as error:
        return fail(str(error), error.exit_code)
    except ApiError as error:
        return fail(str(error), InputError.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def fail(text: str, exit_code: int) -> int:
    """Say what is wrong, a line each."""
    for line in text.splitlines() or [""]:
        click.echo(f"{click.style('error:', fg='red')} {printable(line)}", err=True)
    return exit_code


def echo(text: str = "", *, err: bool = False) -> None:
    """Print one line; a line break within it is escaped, as it would forge another one."""
    click.echo(printable(text), err=err)


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print text of several lines."""
    for line in text.split("\n"):
        echo(line, err=err)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print JSON, readable where it can be."""
    echo_lines(json.dumps(value, ensure_ascii=False, indent=indent))


def printable(text: str) -> str:
    r"""Return the text with everything that is not printable as JSON has it, such as `\u001b` for the escape character.

    Escape sequences of terminals begin with control characters, C1 ones among them; marks of writing direction show a
    text other than it is.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
