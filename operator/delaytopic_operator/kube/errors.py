"""The errors of the API server's answers, in the operator's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delaytopic_operator.errors import (
    ApiServerForbidden,
    ApiServerUnavailable,
    Conflict,
    NamespaceTerminating,
    ObjectRejected,
    OperatorError,
)
from delaytopic_operator.model.kinds import Kind

LONGEST_MESSAGE = 1_000
"""Characters; the API server repeats whole objects, and a status has little room."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, in the words of RBAC: `verb` is get, list, create, update, patch or delete."""

    verb: str
    kind: Kind
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @property
    def resource(self) -> str:
        """Name it as a Role does: `deployments`, `delaytopics/status`."""
        return "/".join(filter(None, (self.kind.plural, self.subresource)))

    def __str__(self) -> str:
        """`patch deployments shop/reminders`."""
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"{self.verb} {self.resource} {place}".rstrip()


class KindNotServed(ApiServerUnavailable):
    """The API server knows no such kind: its CRD is not installed, or not yet. Says nothing of the object."""

    reason = "KindNotServed"


class ObjectGone(Conflict):
    """The object to be changed is not there."""

    reason = "ObjectGone"


def refusal(call: Call, code: int, headers: Mapping[str, str], body: bytes) -> OperatorError:
    """The error for an answer with the HTTP status `code`; pure.

    403 by RBAC is `ApiServerForbidden`, by a quota or a policy `ObjectRejected`, for a namespace that ends
    `NamespaceTerminating`. 404 without a Status is `KindNotServed`, with one `ObjectGone`.
    """
    status = _status(body)
    text = f"{call}: {_message(status, body)}"
    match code:
        case 401:
            return ApiServerForbidden(f"{text}; the API server does not accept the operator's credentials")
        case 403:
            return _forbidden(call, status, text)
        case 404:
            return _not_found(call, status, text)
        case 409:
            return Conflict(text)
        case 408 | 410 | 429:
            return ApiServerUnavailable(text, _retry_after_s(headers))
    if code < 500:
        return ObjectRejected(text)
    return ApiServerUnavailable(text, _retry_after_s(headers))


def _forbidden(call: Call, status: dict[str, Any], text: str) -> OperatorError:
    causes = _details(status).get("causes") or []
    if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return NamespaceTerminating(f"namespace {call.namespace} is being deleted ({call})")
    # RBAC's refusals name the user; admission's do not, and another right would not help there.
    if 'User "' in text and " cannot " in text:
        return ApiServerForbidden(f"{text}; the operator's Role must allow it")
    return ObjectRejected(text)


def _not_found(call: Call, status: dict[str, Any], text: str) -> OperatorError:
    if not status:
        return KindNotServed(
            f"the API server serves no {call.kind.name} of {call.kind.api_version}: is its CRD installed?"
        )
    if _details(status).get("kind") == "namespaces" and call.kind.plural != "namespaces":
        return NamespaceTerminating(f"namespace {call.namespace} does not exist ({call})")
    return ObjectGone(text)


def _status(body: bytes) -> dict[str, Any]:
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _details(status: dict[str, Any]) -> dict[str, Any]:
    return status.get("details") or {}


def _message(status: dict[str, Any], body: bytes) -> str:
    text = str(status.get("message") or body.decode(errors="replace").strip() or "no reason given")
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Only seconds; Kubernetes sends no dates."""
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(text) if text.isdigit() else None
