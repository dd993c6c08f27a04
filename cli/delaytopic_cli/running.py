"""Running a command line: one clear line for each error, and no traceback."""

from __future__ import annotations

import click

from delaytopic_api.errors import ApiError
from delaytopic_cli.errors import CliError, InputError
from delaytopic_cli.terminal import printable

INTERRUPTED = 130


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
