"""Requests and limits of a relay's container, and how much of its memory schedules may take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delaytopic_api.documents import RelaySpec, RelayTemplate, Resources, Settings
from delaytopic_api.errors import Problem
from delaytopic_api.relay import RelayLimits
from delaytopic_api.values import Quantity
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources.identity import Document

LEAST_CONTAINER_MEMORY: Final = Quantity("128Mi")
"""Twice what schedules get at least; a relay takes about 60Mi before it has any."""
LEAST_SCHEDULE_MEMORY: Final = Quantity("64Mi")

_MIB = 1 << 20
_FIELDS = ("requests", "limits")


def chosen_resources(relay: RelaySpec, template: RelayTemplate | None, config: OperatorConfig) -> Document:
    """The DelayTopic's, else the class's, else the operator's: one of them as a whole, quantities as text."""
    of_class = template.resources.as_container() if template else {}
    chosen = relay.resources.as_container() or of_class or config.relay_resources
    return {field: {name: str(value) for name, value in chosen[field].items()} for field in _FIELDS if field in chosen}


def resource_problems(relay: RelaySpec, template: RelayTemplate | None, of_class: str) -> Iterator[Problem]:
    """Return what is wrong with the resources that are in force; `of_class` is how to speak of the class."""
    if relay.resources.as_container():
        yield from _problems(relay.resources, "")
    elif template is not None:
        yield from _problems(template.resources, of_class)


def relay_limits(settings: Settings, template: RelayTemplate | None, resources: Document) -> RelayLimits:
    """Return the bounds of a relay process in a container with these resources.

    Schedules may take half of the container's memory limit (without one, of its request; without both, what a relay
    takes by default), in whole Mi and at least 64Mi. The other half is for the process, reads ahead and batches.
    """
    template = template or RelayTemplate()
    limits = RelayLimits(
        look_ahead=settings.autoscaling.look_ahead,
        session_timeout=template.session_timeout,
        shutdown_grace=template.shutdown_grace,
    )
    sizes = (resources.get(field, {}).get("memory") for field in reversed(_FIELDS))
    memory = next((Quantity(size) for size in sizes if size is not None), None)
    if memory is None:
        return limits
    schedules = max(memory.value // 2 // _MIB, LEAST_SCHEDULE_MEMORY.value // _MIB)
    return limits.model_copy(update={"memory": Quantity(f"{schedules}Mi")})


def _problems(resources: Resources, subject: str) -> Iterator[Problem]:
    memory = (resources.limits or {}).get("memory")
    if memory is not None and memory.value < LEAST_CONTAINER_MEMORY.value:
        message = f'"{memory}" is too little; a relay needs at least {LEAST_CONTAINER_MEMORY}'
        yield Problem("spec.relay.resources.limits.memory", message, subject)
