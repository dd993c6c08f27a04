"""`delaytopic init`: a DelayTopic to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from delaytopic_process.command_line import echo, echo_lines
from delaytopic_process.errors import InputError

TEMPLATE = """\
# A DelayTopic: records produced to the source topic appear on the target topic at their own time.
# Try it on this machine: delaytopic local -f FILE; all fields: docs/reference/delaytopic.md
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata:
  name: order-reminders
  namespace: shop
spec:
  source:
    topic: shop.order-reminders.delayed   # producers write here, with a header such as deliver-after: 90s
    partitions: 4                         # the most relays that can share the work
  target:
    topic: shop.order-reminders           # consumers read here
    # allowedTopics: ["shop.*"]           # further topics that a record may name with deliver-to
  # deadLetter: {topic: shop.order-reminders.dlq}   # by default the source's name and .dlq
  schedule:
    maxDelay: 720h                        # what is due later becomes a dead letter
    # defaultDelay: 5m                    # of records without a time header; by default they leave at once
    # fixedDelay: 5m                      # or: the same delay for every record, which then names none
    # ids: Disabled                       # if no record is ever replaced or cancelled
  precision: 1s                           # how late a record may be before it counts as late
  # delayClassName: standard              # on Kubernetes: where Kafka and the backend are
"""


@click.command(short_help="Write a DelayTopic to begin with.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there; what exists is not overwritten. Default: standard output.",
)
def init(output: Path | None) -> None:
    """Write the YAML of a DelayTopic, with a comment for each field that one may want to change.

    \b
    Examples:
      delaytopic init
      delaytopic init -o reminders.yaml && delaytopic local -f reminders.yaml
    """
    if output is None:
        echo_lines(TEMPLATE.removesuffix("\n"))
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError as error:
        raise InputError(f"--output: {output} exists already; choose another name") from error
    except OSError as error:
        raise InputError(f"--output: {output} cannot be written: {error.strerror}") from error
    echo(f"wrote {output}; try it: delaytopic local -f {output}")
