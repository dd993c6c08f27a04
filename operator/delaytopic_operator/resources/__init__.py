"""The objects that Kubernetes should have for one DelayTopic: pure builders, one file for each object."""

from __future__ import annotations

from delaytopic_operator.resources.audits import audit_children, class_audit_children, is_class_audit
from delaytopic_operator.resources.children import Remembered, children, class_problems, relay_problems
from delaytopic_operator.resources.connection_files import ConnectionFiles, class_files, connection_files
from delaytopic_operator.resources.identity import (
    RelayIdentity,
    audit_name,
    child_name,
    is_own,
    secrets_version,
    selector,
)

__all__ = [
    "ConnectionFiles",
    "RelayIdentity",
    "Remembered",
    "audit_children",
    "audit_name",
    "child_name",
    "children",
    "class_audit_children",
    "class_files",
    "class_problems",
    "connection_files",
    "is_class_audit",
    "is_own",
    "relay_problems",
    "secrets_version",
    "selector",
]
