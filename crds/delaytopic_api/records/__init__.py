"""The record contract: headers, receipts and dead letters."""

from __future__ import annotations

from delaytopic_api.records.dead_letter import DeadLetter, DeadLetterReason, dead_letter_headers, parse_dead_letter
from delaytopic_api.records.headers import (
    ACTION_CANCEL,
    ACTION_SCHEDULE,
    CONTROL_HEADERS,
    DEAD_LETTER_AT,
    DEAD_LETTER_DETAIL,
    DEAD_LETTER_REASON,
    DEAD_LETTER_SOURCE,
    DEAD_LETTER_VALUE_OMITTED,
    DELIVER_ACTION,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_CRON,
    DELIVER_EXPIRES_AT,
    DELIVER_ID,
    DELIVER_TO,
    DELIVER_TZ,
    ENDED,
    RECEIPT,
    RESTATED,
    Headers,
    resembled_header,
)
from delaytopic_api.records.instants import LAST_INSTANT_MS, objection_to_instant
from delaytopic_api.records.receipt import Receipt, receipt_form, receipt_parts

__all__ = [
    "ACTION_CANCEL",
    "ACTION_SCHEDULE",
    "CONTROL_HEADERS",
    "DEAD_LETTER_AT",
    "DEAD_LETTER_DETAIL",
    "DEAD_LETTER_REASON",
    "DEAD_LETTER_SOURCE",
    "DEAD_LETTER_VALUE_OMITTED",
    "DELIVER_ACTION",
    "DELIVER_AFTER",
    "DELIVER_AT",
    "DELIVER_CRON",
    "DELIVER_EXPIRES_AT",
    "DELIVER_ID",
    "DELIVER_TO",
    "DELIVER_TZ",
    "ENDED",
    "LAST_INSTANT_MS",
    "RECEIPT",
    "RESTATED",
    "DeadLetter",
    "DeadLetterReason",
    "Headers",
    "Receipt",
    "dead_letter_headers",
    "objection_to_instant",
    "parse_dead_letter",
    "receipt_form",
    "receipt_parts",
    "resembled_header",
]
