"""All that audits one DelayTopic again and again, from what is in force for it."""

from __future__ import annotations

from delaytopic_api.documents import DelayClass, DelayTopic, Settings
from delaytopic_api.errors import Refused
from delaytopic_operator.config.operator_config import OperatorConfig
from delaytopic_operator.resources.audit_config_map import audit_config_map
from delaytopic_operator.resources.audit_cron_job import audit_cron_job
from delaytopic_operator.resources.children import relay_problems, with_inherited
from delaytopic_operator.resources.connection_files import connection_files
from delaytopic_operator.resources.hash import stamped
from delaytopic_operator.resources.identity import Document, RelayIdentity
from delaytopic_operator.resources.network_policy import audit_network_policy


def audit_children(
    topic: DelayTopic,
    delay_class: DelayClass | None,
    settings: Settings,
    identity: RelayIdentity,
    config: OperatorConfig,
) -> list[Document]:
    """The documents to apply beside those of `children`, whose ServiceAccount and ConfigMap they use; in this order.

    None when the operator is configured without audits. Raises `Refused` where `children` does.
    """
    if config.audit.schedule is None:
        return []
    if problems := relay_problems(settings, topic.spec.relay, delay_class.spec.relay if delay_class else None):
        raise Refused(problems)
    identity = with_inherited(identity, topic.metadata, config)
    documents = [audit_config_map(identity, topic, delay_class)]
    if config.network_policy == "Create":
        documents.append(audit_network_policy(identity))
    documents.append(audit_cron_job(identity, connection_files(settings).kafka_files, config))
    return [stamped(each) for each in documents]
