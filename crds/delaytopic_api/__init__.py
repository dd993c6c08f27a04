"""The delaytopic API: what users write, what relays are started with and answer, what is on the wire.

Documents: `load_documents` reads `DelayTopic`, `DelayClass` and `RecurringRecord`, `resolve` decides what is in force,
`relay_config` makes the document that a relay starts with. Records: the modules `headers`, `receipt` and `dead_letter`.
Imports no client library and reads no clock.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delaytopic_api.documents.delay_class import DelayClass
    from delaytopic_api.documents.delay_topic import DelayTopic
    from delaytopic_api.documents.recurring_record import RecurringRecord
    from delaytopic_api.documents.settings import Settings
    from delaytopic_api.errors import ApiError, InvalidDocument, InvalidText, MalformedHeader, Problem, Refused
    from delaytopic_api.loading.documents import dump_yaml, load_document, load_documents, load_relay_config
    from delaytopic_api.policy.resolve import class_for, class_in_force, relay_config, resolve
    from delaytopic_api.records.dead_letter import DeadLetter, DeadLetterReason
    from delaytopic_api.records.receipt import Receipt
    from delaytopic_api.relay.config import RelayConfig
    from delaytopic_api.relay.status import RelayStatus
    from delaytopic_api.values.duration import Duration
    from delaytopic_api.values.percent import Percent
    from delaytopic_api.values.quantity import Quantity

__all__ = [
    "ApiError",
    "DeadLetter",
    "DeadLetterReason",
    "DelayClass",
    "DelayTopic",
    "Duration",
    "InvalidDocument",
    "InvalidText",
    "MalformedHeader",
    "Percent",
    "Problem",
    "Quantity",
    "Receipt",
    "RecurringRecord",
    "Refused",
    "RelayConfig",
    "RelayStatus",
    "Settings",
    "class_for",
    "class_in_force",
    "dump_yaml",
    "load_document",
    "load_documents",
    "load_relay_config",
    "relay_config",
    "resolve",
]

# Imported when they are asked for (PEP 562): who needs only names of headers does not wait for the models of documents.
_PLACES = {
    "ApiError": "delaytopic_api.errors",
    "DeadLetter": "delaytopic_api.records.dead_letter",
    "DeadLetterReason": "delaytopic_api.records.dead_letter",
    "DelayClass": "delaytopic_api.documents.delay_class",
    "DelayTopic": "delaytopic_api.documents.delay_topic",
    "Duration": "delaytopic_api.values.duration",
    "InvalidDocument": "delaytopic_api.errors",
    "InvalidText": "delaytopic_api.errors",
    "MalformedHeader": "delaytopic_api.errors",
    "Percent": "delaytopic_api.values.percent",
    "Problem": "delaytopic_api.errors",
    "Quantity": "delaytopic_api.values.quantity",
    "Receipt": "delaytopic_api.records.receipt",
    "RecurringRecord": "delaytopic_api.documents.recurring_record",
    "Refused": "delaytopic_api.errors",
    "RelayConfig": "delaytopic_api.relay.config",
    "RelayStatus": "delaytopic_api.relay.status",
    "Settings": "delaytopic_api.documents.settings",
    "class_for": "delaytopic_api.policy.resolve",
    "class_in_force": "delaytopic_api.policy.resolve",
    "dump_yaml": "delaytopic_api.loading.documents",
    "load_document": "delaytopic_api.loading.documents",
    "load_documents": "delaytopic_api.loading.documents",
    "load_relay_config": "delaytopic_api.loading.documents",
    "relay_config": "delaytopic_api.policy.resolve",
    "resolve": "delaytopic_api.policy.resolve",
}

if not TYPE_CHECKING:  # mypy would take every name for one of this module

    def __getattr__(name: str) -> Any:
        """Import a name of `__all__` from its module."""
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(place), name)
        return value
