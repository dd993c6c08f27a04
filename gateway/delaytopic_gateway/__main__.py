"""`delaytopic-gateway`: pending records of a cluster over HTTP, for those whom the cluster allows it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final

import click

from delaytopic_process.extras import missing_package

try:
    from delaytopic_api.values import GATEWAY_TOPICS
    from delaytopic_gateway.app import gateway_app
    from delaytopic_gateway.client.kafka_login import kafka_settings
    from delaytopic_gateway.client.relay_listing import ask_relays
    from delaytopic_gateway.cluster.access import ClusterAccess
    from delaytopic_gateway.cluster.api_server import ApiServer, own_namespace
    from delaytopic_gateway.cluster.reviews import TrustedProxy
    from delaytopic_gateway.cluster.served_topics import ClusterTopics
    from delaytopic_gateway.jobs import JOBS_TOPIC, running_jobs
    from delaytopic_gateway.kafka.cluster import KafkaCluster
    from delaytopic_gateway.probes import probes_app
    from delaytopic_gateway.server import AuditStream, serving
    from delaytopic_gateway.service.gateway import Gateway
    from delaytopic_process.command_line import listen_address, run_command, version_option
    from delaytopic_process.errors import InputError
except ModuleNotFoundError as error:
    sys.exit(f"error: {missing_package(error, 'gateway')}")

SHORTEST_TOKEN = 32
"""The shortest token of a relay, whose digest many may read."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """The options of `delaytopic-gateway`; each is explained at its declaration."""

    listen: str
    kafka_config: Path
    relay_token_file: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    operator_namespace: str | None = None
    hosts: tuple[str, ...] = ()
    user_header: str | None = None
    groups_header: str | None = None
    proxies: tuple[str, ...] = ()
    jobs_topic: str = JOBS_TOPIC
    probe_listen: str | None = None


_A_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@version_option
@click.option("--listen", default="0.0.0.0:8080", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option(
    "--kafka-config",
    required=True,
    metavar="FILE",
    type=_A_FILE,
    help="The login to Kafka (YAML or JSON): bootstrapServers and security, as kafka of a relay's configuration. "
    "DelayTopics of classes with other servers are not served.",
)
@click.option(
    "--relay-token-file",
    metavar="FILE",
    type=_A_FILE,
    help="The token that relays know by its digest (gateway.tokenSha256 of the operator's configuration); it signs "
    "jobs, too. Default: none, relays answer a gateway on their own machine alone, and jobs end with the gateway.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=_A_FILE,
    help="The login to Kubernetes. Default: the pod's ServiceAccount.",
)
@click.option("--context", metavar="NAME", help="Of the kubeconfig. Default: its current one.")
@click.option(
    "--operator-namespace",
    metavar="NAME",
    help="Where relays run whose class names no namespace. Default: the pod's own.",
)
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name to be asked by; repeatable. Default: any.")
@click.option("--user-header", metavar="NAME", help="The header in which a trusted proxy names the user.")
@click.option("--groups-header", metavar="NAME", help="The header in which it names the groups, with commas.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="CIDR",
    help="Where that proxy is; repeatable. From elsewhere those headers are refused.",
)
@click.option(
    "--jobs-topic",
    default=JOBS_TOPIC,
    show_default=True,
    metavar="TOPIC",
    help="The topic that keeps the progress of jobs, delaytopic.gateway.*; made when it is missing, if Kafka lets the "
    "gateway.",
)
@click.option(
    "--probe-listen",
    metavar="HOST:PORT",
    help="Where /healthz and /readyz answer beside --listen, whatever is asked there: for Kubernetes' probes.",
)
def gateway(**options: Any) -> None:
    """Serve REST and console for the DelayTopics of a cluster until SIGTERM.

    Callers show a token of the cluster, or come through a proxy that names them. `get` on delaytopics lets them see
    what is pending, `update` on delaytopics/records what records hold, and write. Each request that writes is a line
    of JSON on standard output. /healthz and /readyz are open to everybody.

    \b
    Examples:
      delaytopic-gateway --kafka-config kafka.yaml
      delaytopic-gateway --kafka-config kafka.yaml --kubeconfig ~/.kube/config --listen 127.0.0.1:8080
      delaytopic-gateway --kafka-config kafka.yaml --host delays.example.com --trusted-proxy 10.1.2.3/32 \\
        --user-header X-Forwarded-User --groups-header X-Forwarded-Groups
    """
    serve(GatewayOptions(**options))


def serve(options: GatewayOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises `InputError`."""
    host, port = listen_address("--listen", options.listen)
    probes = listen_address("--probe-listen", options.probe_listen) if options.probe_listen is not None else None
    if not options.jobs_topic.startswith(GATEWAY_TOPICS):
        raise InputError(
            f"--jobs-topic takes a name that no DelayTopic can have, such as {JOBS_TOPIC}.east, not "
            f'"{options.jobs_topic}": whoever writes to it commands the gateway'
        )
    proxy = TrustedProxy.of(options.user_header, options.groups_header, options.proxies)
    settings = kafka_settings(options.kafka_config)
    api = ApiServer(options.kubeconfig, options.context)
    operator_namespace = options.operator_namespace or own_namespace()
    topics = ClusterTopics(api, settings["bootstrap.servers"], operator_namespace, _now_ms)
    token = relay_token(options.relay_token_file) if options.relay_token_file is not None else None
    service = Gateway(topics, KafkaCluster(settings), partial(ask_relays, token=token), _now_ms)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    # Of a gateway without a token nobody but itself can know which jobs it wrote.
    key = token.encode() if token is not None else token_bytes()
    with running_jobs(service, settings, options.jobs_topic, key, partial(click.echo, err=True)) as jobs:
        app = gateway_app(service, ClusterAccess(api, proxy, options.hosts), AuditStream(sys.stdout), jobs)
        with (
            serving(probes_app(topics.all), probes[1], probes[0]) if probes is not None else nullcontext(),
            serving(app, port, host, forwarded=False) as url,
        ):
            click.echo(f"listening at {url}", err=True)
            stopped.wait()
    click.echo("stopped", err=True)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; errors become one line each on standard error. Returns the exit code."""
    return run_command(gateway, arguments, "delaytopic-gateway")


def main() -> None:
    """Run the command line and exit with its code: 0, 130 after Ctrl-C, else the code of the error's class."""
    sys.exit(run())


def relay_token(file: Path) -> str:
    """Return the token in a file. Raises `InputError`."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--relay-token-file: {file} cannot be read: {error}") from error
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise InputError(f"--relay-token-file: {file} has to hold {SHORTEST_TOKEN} or more characters in one line")
    return token


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
