"""Edge: the gateway of the cluster, found by its Service, at a forwarded port, with a token of the caller."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from delaytopic_api import RecurringRecord
from delaytopic_cli.commands.reach import ReachGateway, read_token
from delaytopic_cli.kubectl.client import IN_CLUSTER, Kubectl, KubectlFailed
from delaytopic_cli.kubectl.delay_topic import Document, delay_topic, full_name, recurring_record, with_kubectl
from delaytopic_cli.kubectl.port_forward import PortForwards
from delaytopic_cli.kubectl.relays import OPERATOR_NAMESPACE, relays_of
from delaytopic_gateway.errors import GatewayUnreachableError, RecordMissingError, UnauthenticatedError
from delaytopic_gateway.reach.rest import GatewayClient, GatewayTopic
from delaytopic_gateway.reach.service import TopicService
from delaytopic_process.command_line import echo
from delaytopic_process.errors import ProgramError

SELECTOR: Final = "app.kubernetes.io/part-of=delaytopic,app.kubernetes.io/component=gateway"
DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_RIGHTS: Final = "get and list on services and pods, and create on pods/portforward"


class NoGateway(ProgramError):
    """The cluster has no gateway where it was looked for."""


class NoToken(UnauthenticatedError):
    """The kubeconfig's user has no token to show a gateway."""


class _Service(NamedTuple):
    namespace: str
    name: str
    port: int

    @classmethod
    def of(cls, document: Document) -> _Service:
        ports = document["spec"]["ports"]
        http = next((each for each in ports if each.get("name") == "http"), ports[0])
        return cls(document["metadata"]["namespace"], document["metadata"]["name"], int(http["port"]))


@dataclass(frozen=True, slots=True)
class Gateways:
    """The gateway that a command means, and who asks it."""

    kubectl: Kubectl
    namespace: str
    service: str | None
    """None: the one with the gateway's labels."""
    token_file: Path | None

    @contextmanager
    def topic(self, document: Document) -> Iterator[GatewayTopic]:
        """Reach a DelayTopic through the gateway while the context lasts.

        Raises `ProgramError`s, `NoGateway` and `NoToken` among them.
        """
        try:
            service = self._find()
            token = read_token(self.token_file) if self.token_file is not None else self._own_token(document)
            with (
                PortForwards(self.kubectl) as forwards,
                forwards.to(service.namespace, f"service/{service.name}", service.port) as forward,
            ):
                client = GatewayClient(forward.url, token, warn=lambda text: echo(text, err=True))
                topic = GatewayTopic(client, document["metadata"]["namespace"], document["metadata"]["name"])
                try:
                    yield topic
                except RecordMissingError:
                    _demand_served(topic, document)
                    raise
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            raise KubectlFailed(f"{error}; to reach the gateway takes {_RIGHTS} there", error.reason) from error

    def _find(self) -> _Service:
        """Return the only gateway there is. Raises `NoGateway`, and `ProgramError` when there are several."""
        cluster = self.kubectl.within(self.namespace)
        if self.service is not None:
            found = cluster.find("services", self.service)
            if found is None:
                raise NoGateway(f"there is no Service {self.service} in the namespace {self.namespace}")
            return _Service.of(found)
        # In one namespace: everybody may give a Service of his own these labels, and whoever answers sees the token.
        services = [_Service.of(each) for each in cluster.items("services", f"--selector={SELECTOR}")]
        if not services:
            raise NoGateway(
                f"no gateway is installed in the namespace {self.namespace} (the chart's value gateway.enabled; "
                "elsewhere: --gateway-namespace)"
            )
        if len(services) > 1:
            names = ", ".join(each.name for each in services)
            raise ProgramError(f"there are several gateways in {self.namespace}: {names}; choose by --gateway-service")
        return services[0]

    def _own_token(self, document: Document) -> str:
        """Return the token that the kubeconfig's user shows the API server. Raises `NoToken`."""
        token = kubeconfig_token(self.kubectl.kubeconfig, self.kubectl.context)
        if token is not None:
            return token
        namespace = document["metadata"]["namespace"]
        raise NoToken(
            "your kubeconfig's user has no token, which is what the gateway knows people by; give one of a "
            f"ServiceAccount: --token-file <(kubectl create token NAME -n {namespace})"
        )


def _demand_served(topic: GatewayTopic, document: Document) -> None:
    """Raise `GatewayUnreachableError` if the record is missing because its DelayTopic is."""
    try:
        topic.facts()
    except RecordMissingError as error:
        raise GatewayUnreachableError(
            f"the gateway does not serve {full_name(document)}: your token's owner may not get it, the operator has "
            "not accepted it, its class names another Kafka than the gateway's, or it has a connection of its own"
        ) from error


def kubeconfig_token(kubeconfig: str | None, context: str | None) -> str | None:
    """Return the bearer token of a kubeconfig's user, from a plugin if need be; None for a user without one.

    Raises `ProgramError`.
    """
    try:
        # Only who has no token file needs the client: it knows all the ways in which a kubeconfig names a token.
        from kubernetes import config  # noqa: PLC0415
        from kubernetes.client import Configuration  # noqa: PLC0415
    except ImportError as error:
        raise ProgramError(
            "to take the token from your kubeconfig needs the Python package kubernetes: pip install "
            "'delaytopic[gateway]'; or give --token-file"
        ) from error
    load: Any = config
    file = kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    found: Any = Configuration()
    try:
        if kubeconfig is None and context is None and not _exists(file) and IN_CLUSTER.exists():
            load.load_incluster_config(client_configuration=found)
        else:
            load.load_kube_config(os.path.expanduser(file), context, found, persist_config=False)
    except Exception as error:  # a plugin's errors are of many kinds
        raise ProgramError(f"no token can be had from your kubeconfig: {error}; give one with --token-file") from error
    credential = found.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
    scheme, _, token = credential.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _exists(files: str) -> bool:
    return any(Path(file).expanduser().exists() for file in files.split(os.pathsep))


def _with_gateway(
    command: Callable[..., Any], finder: Callable[[Kubectl, str], object] = delay_topic
) -> Callable[..., Any]:
    """Add the argument NAME of a DelayTopic, or of what `finder` finds, and the options that find it and its gateway.

    They are handed over as arguments `gateways`, and `find`, which returns what was found. It is called only when that
    is needed: what is wrong with the command line is told first.
    """

    @click.argument("name")
    @with_kubectl
    @click.option(
        "--gateway-namespace",
        metavar="NAME",
        default=OPERATOR_NAMESPACE,
        show_default=True,
        envvar="DELAYTOPIC_GATEWAY_NAMESPACE",
        show_envvar=True,
        help="Look for the gateway in this namespace.",
    )
    @click.option(
        "--gateway-service", metavar="NAME", help="Ask the gateway of this Service. Default: that with its labels."
    )
    @click.option(
        "--token-file",
        metavar="FILE",
        envvar="DELAYTOPIC_TOKEN_FILE",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Show the gateway this token of the cluster. Default: that of your kubeconfig's user.",
    )
    @wraps(command)
    def called(
        *arguments: Any,
        name: str,
        kubectl: Kubectl,
        gateway_namespace: str,
        gateway_service: str | None,
        token_file: Path | None,
        **options: Any,
    ) -> Any:
        gateways = Gateways(kubectl, gateway_namespace, gateway_service, token_file)
        return command(*arguments, gateways=gateways, find=cache(lambda: finder(kubectl, name)), **options)

    return called


def at_gateway(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names a DelayTopic and reaches its gateway, handed over as one argument `reach`."""

    @_with_gateway
    @wraps(command)
    def called(*arguments: Any, gateways: Gateways, find: Callable[[], Document], **options: Any) -> Any:
        reach: ReachGateway = lambda: gateways.topic(find())  # noqa: E731  # with its type
        return command(*arguments, reach=reach, **options)

    return called


def at_gateway_of_recurring(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names a RecurringRecord and reaches the gateway of its DelayTopic.

    They are handed over as `find`, which returns the RecurringRecord, and `reach`.
    """

    @partial(_with_gateway, finder=recurring_record)
    @wraps(command)
    def called(*arguments: Any, gateways: Gateways, find: Callable[[], RecurringRecord], **options: Any) -> Any:
        reach: ReachGateway = lambda: gateways.topic(delay_topic(gateways.kubectl, find().spec.delay_topic))  # noqa: E731  # with its type
        return command(*arguments, find=find, reach=reach, **options)

    return called


def at_gateway_or_relays(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same; relays are asked where no gateway is installed, or the caller lacks rights or a token for it."""

    @_with_gateway
    @wraps(command)
    def called(*arguments: Any, gateways: Gateways, find: Callable[[], Document], **options: Any) -> Any:
        @contextmanager
        def reach() -> Iterator[TopicService]:
            document = find()
            without: ProgramError | None = None
            with ExitStack() as stack:
                try:
                    topic: TopicService = stack.enter_context(gateways.topic(document))
                except (NoGateway, NoToken, KubectlFailed) as reason:
                    if isinstance(reason, KubectlFailed) and reason.reason != "Forbidden":
                        raise
                    without = reason
                if without is None:
                    yield topic
                    return
            try:
                yield relays_of(gateways.kubectl, document)
            except ProgramError as error:
                raise type(error)(f"{error}; relays were asked because {without}") from error

        return command(*arguments, reach=reach, **options)

    return called
