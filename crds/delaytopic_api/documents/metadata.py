"""The part of Kubernetes' object metadata that delaytopic reads; the rest of it is ignored."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, ConfigDict

from delaytopic_api.documents.model import Model
from delaytopic_api.values.names import ClassName, Namespace, ObjectName

GROUP: Final = "delaytopic.dev"


class ApiVersion(StrEnum):
    """The versions of documents that are read: the definitions serve each of them."""

    V1BETA1 = "delaytopic.dev/v1beta1"


API_VERSION: Final = ApiVersion.V1BETA1.value
"""The version that the API server stores, that the operator asks for, and that is written."""
DEFAULT_CLASS_ANNOTATION: Final = "delaytopic.dev/is-default-class"


class _Metadata(Model):
    # Kubernetes checks metadata itself, and adds to it with each release.
    model_config = ConfigDict(extra="ignore")

    labels: dict[str, str] = {}
    """Labels."""
    annotations: dict[str, str] = {}
    """Annotations."""
    uid: str | None = None
    """Given by the API server."""
    generation: int | None = None
    """Counts the changes of spec; given by the API server."""
    resource_version: str | None = None
    """Given by the API server."""
    creation_timestamp: AwareDatetime | None = None
    """Given by the API server."""
    deletion_timestamp: AwareDatetime | None = None
    """Set while the object is being deleted."""
    finalizers: list[str] = []
    """Finalizers: each has to be removed before the object goes."""


class NamespacedMetadata(_Metadata):
    """The metadata of a DelayTopic."""

    name: ObjectName
    """Unique in the namespace."""
    namespace: Namespace = "default"
    """The app team's namespace."""


class ClusterMetadata(_Metadata):
    """The metadata of a DelayClass."""

    name: ClassName
    """Unique in the cluster."""
