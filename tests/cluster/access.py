"""Rights as the API server itself sees them, and those that calls really needed: to be compared by tests of RBAC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from playground.kube.kube_client import KubeClient, Object
from playground.kube.request_log import Call

_REVIEWS = "/apis/authorization.k8s.io/v1"
# What everybody may ask about themselves.
_OWN = ("authentication.k8s.io", "authorization.k8s.io")


class Access(NamedTuple):
    """One verb on one resource of a group; `name` is of the only object it is for, empty for all."""

    verb: str
    group: str
    resource: str
    name: str = ""


def allowed(client: KubeClient, namespace: str) -> set[Access]:
    """Return the rights of a client's user in a namespace, cluster-wide ones included: `kubectl auth can-i --list`."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    answer = client.create(f"{_REVIEWS}/selfsubjectrulesreviews", review | {"spec": {"namespace": namespace}})
    return {
        access for rule in answer["status"]["resourceRules"] for access in of_rule(rule) if access.group not in _OWN
    }


def may(client: KubeClient, access: Access, namespace: str = "") -> bool:
    """Return whether the client's user may do one thing; without namespace, in all of them."""
    resource, _, subresource = access.resource.partition("/")
    asked = {
        "verb": access.verb,
        "group": access.group,
        "resource": resource,
        "subresource": subresource,
        "name": access.name,
        "namespace": namespace,
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = client.create(f"{_REVIEWS}/selfsubjectaccessreviews", review | {"spec": {"resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])


def done(calls: Iterable[Call]) -> set[Access]:
    """Return the rights that served requests needed, without names of objects; discovery and version pages left out."""
    served = (call for call in calls if call.code < 400 and not call.resource.startswith("/"))
    return {Access(call.verb, call.group, call.resource) for call in served if call.group not in _OWN}


def of_rule(rule: Object) -> Iterable[Access]:
    """Yield the rights in a rule of a role."""
    for group in rule.get("apiGroups", []):
        for resource in rule.get("resources", []):
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or [""]:
                    yield Access(verb, group, resource, name)
