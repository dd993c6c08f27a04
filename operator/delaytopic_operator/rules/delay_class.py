"""Validation of a DelayClass, without its servers and Secrets: the first rule that is broken decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from delaytopic_api import DelayClass, load_document
from delaytopic_api.errors import ApiError
from delaytopic_api.values import AuditMode
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources import class_problems
from delaytopic_operator.rules.validate import RELAYS_OUT_OF_SIGHT, Refusal


def check_class(
    document: Mapping[str, Any], others: Iterable[DelayClass], config: OperatorConfig
) -> DelayClass | Refusal:
    """The class, or the first reason for which no DelayTopic can use it; `others` may have it among them."""
    try:
        parsed = load_document({name: part for name, part in document.items() if name != "status"})
    except ApiError as error:
        return Refusal("InvalidSpec", "; ".join(str(error).splitlines()))
    if not isinstance(parsed, DelayClass):
        return Refusal("InvalidSpec", f"kind: is {type(parsed).__name__}, not DelayClass")
    return next(_against(parsed, others, config), parsed)


def _against(parsed: DelayClass, others: Iterable[DelayClass], config: OperatorConfig) -> Iterator[Refusal]:
    if problems := class_problems(parsed.spec):
        yield Refusal("InvalidClass", "; ".join(map(str, problems)))
    if parsed.spec.audit.mode is AuditMode.KUBERNETES and config.audit.driver_account is None:
        message = "spec.audit.mode: Kubernetes needs audit.driverAccount of the operator; audits run as mode Job"
        yield Refusal("InvalidClass", message)
    namespace = parsed.spec.relay_namespace or config.namespace
    if not config.lets_relays_run_in(namespace):
        message = f"spec.relayNamespace: the operator runs no relays in {namespace}; add it to its relayNamespaces"
        yield Refusal(RELAYS_OUT_OF_SIGHT, message)
    also = sorted(each.metadata.name for each in others if each.is_default and each.metadata.name != _name(parsed))
    if parsed.is_default and also:
        message = f"{', '.join(also)} is marked default, too: DelayTopics that name no class get none; mark one only"
        yield Refusal("SeveralDefaults", message)


def _name(parsed: DelayClass) -> str:
    return parsed.metadata.name
