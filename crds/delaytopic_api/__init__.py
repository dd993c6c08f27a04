"""The delaytopic API: what users write, what relays are started with and answer, what is on the wire.

Documents: `load_documents` reads `DelayTopic`, `DelayClass` and `RecurringRecord`, `resolve` decides what is in force,
`relay_config` makes the document that a relay starts with. Records: the modules `headers`, `receipt` and `dead_letter`.
Imports no client library and reads no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

# Whoever needs only names of headers does not wait for the models of documents.
if not TYPE_CHECKING:  # mypy would take every name for one of this module
    from delaytopic_api.faces import late

    __getattr__ = late(
        __name__,
        {
            "documents.delay_class": "DelayClass",
            "documents.delay_topic": "DelayTopic",
            "documents.recurring_record": "RecurringRecord",
            "documents.settings": "Settings",
            "errors": "ApiError InvalidDocument InvalidText MalformedHeader Problem Refused",
            "loading.documents": "dump_yaml load_document load_documents load_relay_config",
            "policy.resolve": "class_for class_in_force relay_config resolve",
            "records.dead_letter": "DeadLetter DeadLetterReason",
            "records.receipt": "Receipt",
            "relay.config": "RelayConfig",
            "relay.status": "RelayStatus",
            "values.duration": "Duration",
            "values.percent": "Percent",
            "values.quantity": "Quantity",
        },
    )
