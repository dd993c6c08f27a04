"""Command lines: subcommands imported late, one clear line for each error, and text of others made harmless."""

from __future__ import annotations

import difflib
import importlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from delaytopic_api.errors import ApiError
from delaytopic_process.errors import ExtraMissingError, InputError, ProgramError
from delaytopic_process.extras import missing_package

INTERRUPTED = 130
_EXTRA = "delaytopic.extra"
"""The extra that the chosen command needs, among what contexts of one command line share."""


class Lazy(NamedTuple):
    """A command that is imported when it is chosen."""

    place: str
    """`module:attribute`."""
    short_help: str
    """Its line in the help of its group."""
    extra: str | None = None
    """The extra of the Python package that brings what it imports; None: it needs none, or that of its group."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and lines by itself: its help and completion import none of them."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, Lazy], **kwargs: Any) -> None:
        """`lazy_commands` has the commands by name, in the order of use."""
        super().__init__(*args, **kwargs)
        self._lazy_commands = dict(lazy_commands)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use."""
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or return None for an unknown name."""
        lazy = self._lazy_commands.get(cmd_name)
        if lazy is None:
            return None
        if lazy.extra is not None:
            ctx.meta[_EXTRA] = lazy.extra
        module, _, attribute = lazy.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is answered with those that resemble it."""
        name = args[0]
        if name not in self._lazy_commands and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command '{name}'.{did_you_mean(name, self._lazy_commands)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises `ExtraMissingError` for a package that is not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if ctx.meta.get(_EXTRA) is None:
                raise
            raise ExtraMissingError(missing_package(error, ctx.meta[_EXTRA])) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.short_help) for name, lazy in self._lazy_commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin like this, and the group's own options."""
        commands = [
            CompletionItem(name, help=lazy.short_help)
            for name, lazy in self._lazy_commands.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


class NearChoice(click.Choice[str]):
    """An option's choices; a value that is none of them is answered with the one that it resembles."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = did_you_mean(str(value), [str(choice) for choice in self.choices])
            raise click.BadParameter(f"{error.message}{hint}", ctx, param) from error


def listen_address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`; raises InputError that names the option."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise InputError(f'{option} takes HOST:PORT, such as 0.0.0.0:8080, not "{text}"')
    return host.strip("[]") or "0.0.0.0", int(port)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence with the known words that resemble this one, with a space before it, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=2)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version, for `--version`; the package's metadata is read only then."""
    if wanted and not ctx.resilient_parsing:
        import importlib.metadata  # noqa: PLC0415  # it takes longer than all else of a help

        click.echo(f"{ctx.find_root().info_name} {importlib.metadata.version('delaytopic')}")
        ctx.exit()


version_option = click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Show the version."
)


def run_command(command: click.Command, arguments: list[str] | None, program: str) -> int:
    """Run it; errors become one line each on standard error. Returns the exit code."""
    try:
        result = command.main(arguments, prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ProgramError as error:
        return fail(str(error), error.exit_code)
    except ApiError as error:
        return fail(str(error), InputError.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def fail(text: str, exit_code: int) -> int:
    """Say what is wrong, a line each."""
    for line in text.splitlines() or [""]:
        click.echo(f"{styled('error:', fg='red')} {printable(line)}", err=True)
    return exit_code


def warn(text: str) -> None:
    """Say on standard error what may not be meant, in one line; the command goes on."""
    click.echo(f"{styled('warning:', fg='yellow')} {printable(text)}", err=True)


def styled(text: str, **style: Any) -> str:
    """Return the text with colours, or as it is where the environment has a `NO_COLOR` that is not empty."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)


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


def echo_document(value: Any, form: str) -> None:
    """Print a document as `json` or `yaml`."""
    if form == "json":
        echo_json(value)
        return
    from delaytopic_api.loading import write_yaml  # noqa: PLC0415  # few ask for it, and every command would wait for it

    echo_lines(write_yaml([value]).rstrip("\n"))


def printable(text: str) -> str:
    r"""Return the text with everything that is not printable as JSON has it, such as `\u001b` for the escape character.

    Escape sequences of terminals begin with control characters, C1 ones among them; marks of writing direction show a
    text other than it is.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
