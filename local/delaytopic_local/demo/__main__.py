"""`python -m delaytopic_local.demo`: run the demo; exits non-zero when the verifier finds a fault."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from delaytopic_api.errors import ApiError
from delaytopic_api.values import BackendType
from delaytopic_local.demo.run import run_demo
from delaytopic_local.errors import AuditFailedError
from delaytopic_process.errors import InputError, ProgramError

EXAMPLE = Path(__file__).parents[3] / "examples" / "reminders.yaml"


@click.command()
@click.option("--backend", type=click.Choice([str(backend) for backend in BackendType]), help="Instead of the file's.")
@click.option(
    "-f",
    "--file",
    default=EXAMPLE,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML with the DelayTopic to show. Default: examples/reminders.yaml.",
)
def main(backend: str | None, file: Path) -> None:
    """Send 20,000 records through a real Kafka and a real relay, kill the relay on the way, and audit the result."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = BackendType(backend) if backend is not None else None
    try:
        verdict = run_demo(file, chosen, click.echo)
    except (ProgramError, ApiError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code if isinstance(error, ProgramError) else InputError.exit_code)
    sys.exit(0 if verdict.is_clean else AuditFailedError.exit_code)


if __name__ == "__main__":
    main()
