"""`delaytopic slo prepare`: let Java learn once what every audit does."""

from __future__ import annotations

import click

from delaytopic_cli.slo.publishing import fail
from delaytopic_slo.errors import SloError
from delaytopic_slo.runtime.java_archive import make_archive


@click.command(short_help="Let Java learn once what audits do: they take less time.")
def prepare() -> int:
    """Audit made-up records, and keep what Java learned for the audits of this machine.

    It takes a minute or two, and 250 MB below $XDG_CACHE_HOME or ~/.cache, needs no Kafka, and changes no result. An
    archive is for one version of Java, Spark and delaytopic: audits of other versions do without.

    \b
    Example:
      delaytopic slo prepare && delaytopic slo run -f examples/reminders.yaml
    """
    try:
        file = make_archive()
    except SloError as error:
        return fail(error)
    click.echo(f"{file} ({file.stat().st_size // 1_000_000} MB)")
    return 0
