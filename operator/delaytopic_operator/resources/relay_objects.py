"""The objects that run the relays of a DelayTopic: its ServiceAccount, ConfigMap, Deployment, budget and policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from delaytopic_api import DelayTopic
from delaytopic_api.documents import DelayClassSpec, NamespacedMetadata, RelaySpec, RelayTemplate, Settings
from delaytopic_api.errors import Problem, Refused
from delaytopic_api.loading import dump_yaml
from delaytopic_api.policy import relay_config
from delaytopic_api.relay import HttpServer, RelayConfig
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources.connection_files import (
    class_connection_problems,
    connection_files,
    connection_problems,
)
from delaytopic_operator.resources.container_resources import chosen_resources, relay_limits, resource_problems
from delaytopic_operator.resources.deployment import RelayPods, deployment
from delaytopic_operator.resources.identity import (
    Document,
    RelayIdentity,
    config_name,
    inherited,
    metadata,
    selector,
    stamped,
)
from delaytopic_operator.resources.network_policy import network_policy
from delaytopic_operator.resources.pod import CONFIG_KEY
from delaytopic_operator.resources.template import merged_template, template_problems


class Remembered(NamedTuple):
    """The facts that relays are told beside the settings: what the operator knows of earlier ones."""

    declared_ms: int | None = None
    """The time at which the rules for records were declared."""
    accepted_topic_id: str | None = None
    """The id of the source topic, if somebody has accepted it in the place of another one."""


def service_account(identity: RelayIdentity) -> Document:
    """Relays do not speak to the API server."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(identity, identity.relays_name),
        "automountServiceAccountToken": False,
    }


def config_map(identity: RelayIdentity, config: RelayConfig) -> Document:
    """One key, `relay.yaml`. Its name follows from what it holds: pods of a Deployment that is not changed yet start
    from what they always did.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(identity, config_name(identity, config)),
        "immutable": True,
        "data": {CONFIG_KEY: dump_yaml(config)},
    }


def pod_disruption_budget(identity: RelayIdentity) -> Document:
    """Return the budget by which at most one relay is evicted at a time.

    With a single relay it protects nothing and holds nothing up: no drain of a node ever waits for somebody, unlike
    with `minAvailable: 1`. So there is one for any number of relays, and scaling changes one object only. A relay that
    is not ready, as Kafka is away, does no good by staying, and may always be evicted.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(identity, identity.relays_name),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(identity.key)},
        },
    }


def relay_objects(
    settings: Settings,
    identity: RelayIdentity,
    topic: DelayTopic,
    template: RelayTemplate | None,
    config: OperatorConfig,
    secrets_version: str,
    replicas: int | None,
    remembered: Remembered,
) -> list[Document]:
    """The documents to apply, in this order: what pods need comes before what makes pods.

    `template` is the class's. Without `replicas` their number is left to others. Raises `Refused` with all of
    `relay_problems`.
    """
    relay = topic.spec.relay
    if problems := relay_problems(settings, relay, template):
        raise Refused(problems)
    identity = with_inherited(identity, topic.metadata, config)
    files = connection_files(settings)
    resources = chosen_resources(relay, template, config)
    document = relay_config(
        settings,
        files.kafka,
        files.redis,
        http=_pages(settings, config),
        limits=relay_limits(settings, template, resources),
        signing_keys_file=files.signing_keys.path if files.signing_keys else None,
        declared_ms=remembered.declared_ms,
        accepted_topic_id=remembered.accepted_topic_id,
    )
    pods = RelayPods(
        image=relay.image or config.images.relay,
        resources=resources,
        template=merged_template(relay, template),
        files=files.files,
        secrets_version=secrets_version,
    )
    documents = [service_account(identity), config_map(identity, document)]
    if config.network_policy == "Create":
        documents.append(network_policy(identity, document, config))
    documents.append(pod_disruption_budget(identity))
    documents.append(deployment(identity, document, pods, config, replicas))
    return [stamped(each) for each in documents]


def _pages(settings: Settings, config: OperatorConfig) -> HttpServer | None:
    """The gateway serves none with a connection of its own: those relays are not told of it."""
    if config.gateway is None or settings.class_name is None:
        return None
    return HttpServer(pending_token_sha256=config.gateway.token_sha256)


def relay_problems(settings: Settings, relay: RelaySpec, template: RelayTemplate | None) -> list[Problem]:
    """Everything for which no relays can be made, each for the DelayTopic or for its class to change."""
    topic, of_class = f"DelayTopic {settings.namespace}/{settings.name}", f"DelayClass {settings.class_name}"
    own = [
        *connection_problems(settings),
        *_image_problems(settings, relay),
        *resource_problems(relay, template, of_class),
        *template_problems(relay, template, of_class),
    ]
    return [problem if problem.subject else problem._replace(subject=topic) for problem in own]


def class_problems(spec: DelayClassSpec) -> list[Problem]:
    """Everything in a class for which no relays can be made, whoever uses it."""
    nothing = RelaySpec()
    return [
        *class_connection_problems(spec),
        *resource_problems(nothing, spec.relay, ""),
        *template_problems(nothing, spec.relay, ""),
    ]


def with_inherited(identity: RelayIdentity, metadata: NamespacedMetadata, config: OperatorConfig) -> RelayIdentity:
    """The identity with what the operator's allow lists take over from the DelayTopic."""
    return replace(
        identity,
        labels=inherited(metadata.labels, config.inherited_labels),
        annotations=inherited(metadata.annotations, config.inherited_annotations),
    )


def _image_problems(settings: Settings, relay: RelaySpec) -> Iterator[Problem]:
    if relay.image is not None and settings.class_name is not None:
        reason = f"it would run with the credentials of DelayClass {settings.class_name}"
        yield Problem("spec.relay.image", f"is only allowed with an inline spec.connection: {reason}")
