"""The cost of the operator on this machine: `python -m bench.operator [--delay-topics N ...]`.

Run from the repository's root. API server, Kafka and Redis start for it; one server answers for all relays.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import fields
from pathlib import Path

import click
from images.tools.binaries import kubernetes_programs
from playground.kube.control_plane import OwnControlPlane, custom_resource_definitions

from bench.figures.table import Table
from bench.machine import describe_machine
from bench.operator.measure import Cost, crowd, measure
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.redis_server import RedisServer


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--delay-topics", type=click.IntRange(1), multiple=True, default=(100, 1_000), show_default=True, help="How many."
)
@click.option("--steady", default=60.0, show_default=True, help="Seconds in which nothing changes.")
def main(delay_topics: tuple[int, ...], steady: float) -> None:
    """Measure what the operator costs with so many DelayTopics, each with a relay, and how soon it acts on one more.

    Figures go to standard output as JSON, progress and the table to standard error.
    """
    costs = [_measured(each, steady) for each in delay_topics]
    names = [field.name for field in fields(Cost)]
    rows = [tuple(f"{cost.document()[name]:g}" for name in names) for cost in costs]
    click.echo(Table(tuple(name.replace("_", " ") for name in names), rows).text(), err=True)
    click.echo(json.dumps({"machine": describe_machine(), "operator": [cost.document() for cost in costs]}, indent=2))


def _measured(delay_topics: int, steady_s: float) -> Cost:
    with tempfile.TemporaryDirectory(prefix="bench-operator-") as name:
        folder, definitions = Path(name), custom_resource_definitions()
        with (
            OwnControlPlane(kubernetes_programs(), folder / "plane", before_controllers=definitions) as plane,
            KafkaServer(folder / "kafka") as kafka,
            RedisServer(folder / "redis") as redis,
            crowd(plane, kafka.bootstrap_servers, redis.url, folder) as platform,
        ):
            return measure(platform, delay_topics, steady_s, lambda line: click.echo(line, err=True))


if __name__ == "__main__":
    main()
