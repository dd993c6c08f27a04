"""`delaytopic plan`: what the operator would make of documents."""

from __future__ import annotations

from typing import Any

import click

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.plan.errors import NoPlan
from delaytopic_process.command_line import NearChoice, echo_lines
from delaytopic_process.errors import ProgramError


class WrongUsage(click.UsageError):
    """The command was called wrongly: for a pipeline, nothing can be said then."""

    exit_code = NoPlan.exit_code


class PlanCommand(click.Command):
    """A command whose wrong usage is no plan: click's own exit code for it means something else here."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise WrongUsage(error.format_message(), error.ctx) from error


@click.command(cls=PlanCommand, short_help="Show what the operator would make of DelayTopics.")
@click.option(
    "-f", "--file", "files", multiple=True, required=True, metavar="FILE",
    help="YAML with DelayTopics, RecurringRecords, DelayClasses and Namespaces; - is standard input. Repeatable.",
)  # fmt: skip
@click.option("--against", type=NearChoice(["cluster"]), help="Show only what differs from a cluster.")
@click.option("--context", help="The context of your kubeconfig. Default: the current one.")
@click.option("--kubeconfig", metavar="FILE", help="As of kubectl.")
@click.option("-n", "--namespace", help="Of objects that name none. Default: the context's, else default.")
@click.option(
    "--operator-config", metavar="FILE",
    help="The operator's configuration. Default: the one in the cluster, else the operator's defaults.",
)  # fmt: skip
@click.option("--show-objects", is_flag=True, help="Show the documents that would be written, too.")
@click.option("-o", "--output", type=NearChoice(["text", "json", "yaml"]), default="text", show_default=True)
def plan(
    files: tuple[str, ...],
    against: str | None,
    context: str | None,
    kubeconfig: str | None,
    namespace: str | None,
    operator_config: str | None,
    show_objects: bool,
    output: str,
) -> int:
    """Show what the operator would make of DelayTopics, and write nothing.

    By itself: what is in force for each DelayTopic and who said so, whether it is refused and why, and the topics,
    objects and relays that would be made; for each RecurringRecord, the record that would be written, replaced or
    cancelled, and the next times. With --against cluster: only what would change there, read with the kubectl
    of your PATH. The operator's own rules decide. Kafka is not asked, and Secrets are not read.

    \b
    Exit codes, for pipelines:
      0  nothing to do
      1  it cannot be said: a file or the cluster cannot be read
      2  there are changes
      3  something is refused

    \b
    Examples:
      delaytopic plan -f reminders.yaml -f class.yaml
      delaytopic plan -f reminders.yaml --against cluster --context production
      kustomize build teams/shop | delaytopic plan -f - --against cluster -o json
    """
    kubectl = Kubectl.of(context, kubeconfig, namespace)
    text, code = _judged(files, kubectl if against else None, namespace, operator_config, output, show_objects)
    echo_lines(text)
    return code


def _judged(
    files: tuple[str, ...],
    kubectl: Kubectl | None,
    namespace: str | None,
    operator_config: str | None,
    output: str,
    show_objects: bool,
) -> tuple[str, int]:
    try:
        # Only here are the operator's rules needed, and its package with them.
        from delaytopic_cli.plan.run import exit_code, planned, shown  # noqa: PLC0415

        outcome = planned(files, kubectl, namespace, operator_config)
    except ModuleNotFoundError as error:
        needed = f"`delaytopic plan` needs the operator's Python packages, and {error.name} is missing"
        raise NoPlan(f"{needed}; install them with: pip install 'delaytopic[operator]'") from error
    except ProgramError as error:
        raise NoPlan(str(error)) from error
    return shown(outcome, output, objects=show_objects), exit_code(outcome)
