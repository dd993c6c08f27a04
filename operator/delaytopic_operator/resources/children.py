"""All that runs the relays of one DelayTopic, from what is in force for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delaytopic_api.documents import NamespacedMetadata, RelaySpec, RelayTemplate, Settings
from delaytopic_api.errors import Problem, Refused
from delaytopic_api.policy import relay_config
from delaytopic_operator.config.operator_config import OperatorConfig
from delaytopic_operator.resources.config_map import config_map
from delaytopic_operator.resources.connection_files import connection_files, connection_problems
from delaytopic_operator.resources.deployment import RelayPods, deployment
from delaytopic_operator.resources.hash import stamped
from delaytopic_operator.resources.identity import Document, RelayIdentity, inherited
from delaytopic_operator.resources.network_policy import network_policy
from delaytopic_operator.resources.pod_disruption_budget import pod_disruption_budget
from delaytopic_operator.resources.resources import chosen_resources, relay_limits, resource_problems
from delaytopic_operator.resources.service_account import service_account
from delaytopic_operator.resources.template import merged_template, template_problems


def children(
    settings: Settings,
    identity: RelayIdentity,
    relay: RelaySpec,
    template: RelayTemplate | None,
    config: OperatorConfig,
    secrets_version: str,
    replicas: int | None,
    metadata: NamespacedMetadata,
) -> list[Document]:
    """The documents to apply, in this order: what pods need comes before what makes pods.

    `template` is the class's, `metadata` the DelayTopic's. Without `replicas` their number is left to others.
    Raises `Refused` with all of `relay_problems`.
    """
    if problems := relay_problems(settings, relay, template):
        raise Refused(problems)
    identity = with_inherited(identity, metadata, config)
    files = connection_files(settings)
    resources = chosen_resources(relay, template, config)
    document = relay_config(
        settings,
        files.kafka,
        files.redis,
        limits=relay_limits(settings, template, resources),
        signing_keys_file=files.signing_keys.path if files.signing_keys else None,
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
