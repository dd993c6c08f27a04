"""The objects that Kubernetes should have for one DelayTopic: pure builders, one file for each object."""

from __future__ import annotations

from delaytopic_operator.resources.audits import audit_objects, cron_job_of
from delaytopic_operator.resources.connection_files import ConnectionFiles, class_files, connection_files
from delaytopic_operator.resources.deployment import image_of, kube_cluster_of
from delaytopic_operator.resources.identity import (
    RelayIdentity,
    audit_name,
    is_own,
    relays_name,
    secrets_version,
    selector,
)
from delaytopic_operator.resources.relay_objects import Remembered, class_problems, relay_objects, relay_problems

__all__ = [
    "ConnectionFiles",
    "RelayIdentity",
    "Remembered",
    "audit_name",
    "audit_objects",
    "class_files",
    "class_problems",
    "connection_files",
    "cron_job_of",
    "image_of",
    "is_own",
    "kube_cluster_of",
    "relay_objects",
    "relay_problems",
    "relays_name",
    "secrets_version",
    "selector",
]
