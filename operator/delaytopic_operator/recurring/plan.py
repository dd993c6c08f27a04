"""Decides what is written for a RecurringRecord (its record, the cancel of it, or nothing), and its status. Pure.

The id of what is written is the object's uid, and all of it goes to one partition, which the status names before
anything is written. So whatever is written twice is a replacement, and a crash between write and status starts no
second chain. A replacement knows no slot before its own timestamp. It is therefore not written while a slot of its rule
is being delivered: a relay that is slow would deliver that slot for the old record, and again for the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple
from zlib import crc32

from delaytopic_api import Settings
from delaytopic_api.documents import (
    API_VERSION,
    ConditionType,
    RecurringRecord,
    RecurringRecordStatus,
    WrittenRecord,
)
from delaytopic_api.errors import InvalidDocument
from delaytopic_api.errors import Problem as FieldProblem
from delaytopic_api.loading import validate
from delaytopic_api.policy import NEEDS_IDS, recurring_refusals, recurring_slots, takes_ids
from delaytopic_api.records import ACTION_CANCEL, DELIVER_ACTION, DELIVER_ID
from delaytopic_api.recurrence import ZONES, Recurrence, read_recurrence
from delaytopic_api.relay import LastOccurrence
from delaytopic_api.values import OnRemoval
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition, instant, instant_ms, merged
from delaytopic_operator.model.kafka_view import NewRecord
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.observation import Problem
from delaytopic_operator.recurring.deliveries import shown, with_occurrence
from delaytopic_operator.rules.validate import Accepted, Refusal

BEYOND_MAX_DELAY: Final = "BeyondMaxDelay"
FINALIZER: Final = "delaytopic.dev/cancels-what-recurs"
AGAIN_MS: Final = 60_000
"""The time between two looks. Nobody tells that the topic behind a DelayTopic was made anew."""
TOLD_MS: Final = 5_000
"""The time after which a relay has delivered what was due, as a rule."""
APART_MS: Final = 10_000
"""A relay that is further behind than this is late for all that it delivers."""


@dataclass(frozen=True)
class Source:
    """The source of the DelayTopic, as far as records may be written to it."""

    topic: str
    topic_id: str
    partitions: int
    delay_topic_uid: str
    settings: Settings
    """The settings of the DelayTopic, whose relays read what is written."""


@dataclass(frozen=True)
class Hindrance:
    """The reason why nothing can be written."""

    problem: Problem
    is_gone: bool = False
    """True if what was written goes with the DelayTopic, so that there is nothing to wait for."""
    is_doubtful: bool = False
    """True if relays may have refused what was written last, so that it is written again when this is over."""


@dataclass(frozen=True)
class RecurringObservation:
    """One look at one RecurringRecord."""

    now_ms: int
    document: Mapping[str, Any] | None
    """The object; None when it is gone."""
    source: Source | Hindrance | None = None
    """None where the object is gone, or cannot be read."""
    told: LastOccurrence | None = None
    """The last delivery, as relays told when they were asked."""


@dataclass(frozen=True)
class RecurringPlan:
    """The outcome of one look, in the order in which it is done."""

    is_held: bool | None = None
    """True if the finalizer is to be set; None: it stays as it is."""
    intent: Mapping[str, Any] | None = None
    """The status to apply before anything is written."""
    message: NewRecord | None = None
    """The record to write."""
    status: Mapping[str, Any] | None = None
    """The status to apply at last; None: it says nothing new."""
    is_free: bool = False
    """True if the finalizer is to be taken away at last."""
    next_at_ms: int | None = None


class _Step(NamedTuple):
    """The record to write, and the condition that tells of it."""

    message: NewRecord | None
    written: WrittenRecord | None
    condition: Condition
    next_ms: int | None = None
    at_ms: int | None = None
    begins: bool = False
    """True if the message is the record, whose deliveries are numbered from 1 on."""


def read_document(document: Mapping[str, Any]) -> RecurringRecord:
    """Read an object as the API server has it; raises `InvalidDocument`."""
    return validate(RecurringRecord, document)


def plan_recurring(seen: RecurringObservation) -> RecurringPlan:
    """Decide what to do about a RecurringRecord now."""
    if seen.document is None:
        return RecurringPlan()
    try:
        record = read_document(seen.document)
    except InvalidDocument as error:
        return _of_invalid(seen, seen.document, str(error))
    is_held = FINALIZER in record.metadata.finalizers
    if record.metadata.deletion_timestamp is not None:
        return _of_going(seen, record) if is_held else RecurringPlan()
    step = _step(record, seen)
    wants = record.spec.deletion_policy is OnRemoval.CANCEL
    intent = None
    if step.message is not None and step.written is not None:
        intended = _unknown(step.written)
        # What Kafka refuses is tried again and again, and its reason stays.
        if record.status is None or record.status.written != intended:
            waiting = Condition(ConditionType.READY, UNKNOWN, "Writing", "the record is being written")
            intent = _news(seen, record.status, waiting, intended, None, shown(record.status, begins=step.begins))
    told = shown(record.status, begins=True) if step.begins else with_occurrence(record, seen.told, seen.now_ms)
    return RecurringPlan(
        is_held=wants if wants != is_held else None,
        intent=intent,
        message=step.message,
        status=_news(seen, record.status, step.condition, step.written, step.next_ms, told),
        next_at_ms=min([seen.now_ms + AGAIN_MS, *_worth_a_look(record, step)]),
    )


def _worth_a_look(record: RecurringRecord, step: _Step) -> Iterator[int]:
    """Yield when a record may be written, and when relays have delivered the next time of its rule."""
    if step.at_ms is not None:
        yield step.at_ms
    elif step.next_ms is not None:
        yield step.next_ms + (record.spec.jitter.ms if record.spec.jitter is not None else 0) + TOLD_MS


def status_of_refused(seen: RecurringObservation, decided: RecurringPlan, problem: Problem) -> Mapping[str, Any] | None:
    """Return the status where Kafka did not take the record, though it may be there; None if it says nothing new."""
    assert seen.document is not None
    known = read_document(seen.document).status
    applied = decided.intent["status"] if decided.intent is not None else seen.document.get("status") or {}
    written = RecurringRecordStatus.model_validate(applied, by_alias=True, by_name=False).written
    return _news(seen, known, _hindered(Hindrance(problem)), _unknown(written), None)


def hindrance(key: Key, document: Mapping[str, Any] | None, verdict: Accepted | Refusal | None) -> Hindrance | None:
    """Return why nothing may be written through a DelayTopic, in the order in which one needs the other."""
    if document is None:
        missing = f"there is no DelayTopic {key}: apply it, or name another one"
        return Hindrance(Problem("DelayTopicMissing", missing), is_gone=True)
    if "deletionTimestamp" in document["metadata"]:
        going = f"the DelayTopic {key} is being deleted: name another one, or apply it again"
        return Hindrance(Problem("DelayTopicMissing", going), is_gone=True)
    if not isinstance(verdict, Accepted):
        refused = verdict.message if verdict is not None else "it was not looked at yet"
        why = f"the DelayTopic {key} is refused, and has to be put right first: {refused}"
        return Hindrance(Problem("DelayTopicRefused", why))
    if not takes_ids(verdict.settings):
        why = f"the DelayTopic {key} takes no ids by header: {NEEDS_IDS}"
        # What relays wrote before recurs on, and takes no cancel; what they read afterwards is a dead letter.
        return Hindrance(Problem("IdsNotTaken", why), is_doubtful=True)
    return None


def safe_at(recurrence: Recurrence, now_ms: int) -> int:
    """Return the first instant from now on at which a replacement meets no slot that is being delivered.

    It is now where jitter leaves no time between two slots: what waits is then replaced, whichever slot it is of.
    """
    zone = ZONES(recurrence.zone)
    busy_ms = recurrence.jitter_ms + APART_MS
    slot_ms = recurrence.rule.slot_after(now_ms - busy_ms, zone)
    if slot_ms is None or slot_ms - APART_MS > now_ms:
        return now_ms
    next_ms = recurrence.rule.slot_after(slot_ms, zone)
    free_ms = slot_ms + busy_ms
    return free_ms if next_ms is None or next_ms - APART_MS > free_ms else now_ms


def _of_invalid(seen: RecurringObservation, document: Mapping[str, Any], message: str) -> RecurringPlan:
    """Say what is wrong. The schema lets little of this through, such as a minute that no hour has."""
    if "deletionTimestamp" in document["metadata"]:
        return RecurringPlan(is_free=FINALIZER in (document["metadata"].get("finalizers") or ()))
    stalled = Condition(ConditionType.READY, FALSE, "InvalidSpec", message)
    try:
        status = RecurringRecordStatus.model_validate(document.get("status") or {}, by_alias=True, by_name=False)
    except ValueError:
        status = RecurringRecordStatus()
    return RecurringPlan(status=_news(seen, status, stalled, status.written, None), next_at_ms=None)


def _of_going(seen: RecurringObservation, record: RecurringRecord) -> RecurringPlan:
    written = record.status.written if record.status is not None else None
    if record.spec.deletion_policy is OnRemoval.KEEP:
        return RecurringPlan(is_free=True)
    if isinstance(seen.source, Hindrance) and not seen.source.is_gone and written is not None:
        condition = _hindered(seen.source)
        return RecurringPlan(
            status=_news(seen, record.status, condition, written, None), next_at_ms=seen.now_ms + AGAIN_MS
        )
    message = None
    if isinstance(seen.source, Source) and _is_of(written, seen.source) and written is not None:
        message = _cancel(record, seen.source.topic, written.partition, seen.now_ms)
    return RecurringPlan(message=message, is_free=True)


def _step(record: RecurringRecord, seen: RecurringObservation) -> _Step:
    written = record.status.written if record.status is not None else None
    if not isinstance(seen.source, Source):
        assert seen.source is not None
        return _Step(None, _unknown(written) if seen.source.is_doubtful else written, _hindered(seen.source))
    known = written if _is_of(written, seen.source) else None
    if record.spec.suspend:
        said = f": {record.spec.suspend_note}" if record.spec.suspend_note else ""
        paused = Condition(ConditionType.READY, FALSE, "Suspended", f"spec.suspend is true{said}")
        return _cancelled(record, seen, seen.source, known, paused)
    recurrence = _recurrence(record, seen.now_ms)
    next_ms = next(iter(recurring_slots(record, seen.now_ms, 1)), None) if recurrence is not None else None
    message = _message(record, seen.source, _partition(record, seen.source, known), seen.now_ms)
    digest = _digest(message)
    refused = next(recurring_refusals(record, seen.source.settings, seen.now_ms), None)
    if refused is not None:
        return _refused(record, seen, seen.source, known, digest, refused)
    if next_ms is None or recurrence is None:
        ended = Condition(ConditionType.READY, TRUE, "Ended", "no time of its rule is left")
        if known is not None and known.digest == digest:
            return _Step(None, known, ended)
        return _cancelled(record, seen, seen.source, known, ended)
    ready = Condition(ConditionType.READY, TRUE, "Written", f"it recurs in {seen.source.topic}")
    if known is not None and known.digest == digest:
        return _Step(None, known, ready, next_ms)
    at_ms = safe_at(recurrence, seen.now_ms) if known is not None else seen.now_ms
    if at_ms > seen.now_ms:
        near = f"it is written at {instant(at_ms)}, behind a delivery that is near"
        waits = Condition(ConditionType.READY, UNKNOWN, "Waiting", near)
        return _Step(None, written, waits, next_ms, at_ms)
    return _Step(message, _written(message, digest, seen.source), ready, next_ms, begins=True)


def _refused(
    record: RecurringRecord,
    seen: RecurringObservation,
    source: Source,
    known: WrittenRecord | None,
    digest: str,
    refused: FieldProblem,
) -> _Step:
    """Write nothing that no relay takes, and cancel what recurs by a rule that the object has no longer."""
    why = f"{refused.path}: {refused.message}: nothing is written until it is put right"
    condition = Condition(ConditionType.READY, FALSE, BEYOND_MAX_DELAY, why)
    if known is not None and not _is_by_this_spec(known, digest, record):
        return _cancelled(record, seen, source, known, condition)
    # What waits leaves by the rules that it was read by, and the next one, which nobody takes, ends all.
    return _Step(None, _unknown(known), condition)


def _cancelled(
    record: RecurringRecord,
    seen: RecurringObservation,
    source: Source,
    known: WrittenRecord | None,
    condition: Condition,
) -> _Step:
    """Cancel what was written, unless nothing was, or this is done already."""
    if known is None:
        return _Step(None, None, condition)
    message = _cancel(record, source.topic, known.partition, seen.now_ms)
    digest = _digest(message)
    if known.digest == digest:
        return _Step(None, known, condition)
    return _Step(message, _written(message, digest, source), condition)


def _hindered(hindrance: Hindrance) -> Condition:
    problem = hindrance.problem
    return Condition(ConditionType.READY, UNKNOWN if problem.passing else FALSE, problem.reason, problem.message)


def _is_of(written: WrittenRecord | None, source: Source) -> bool:
    """Return whether what was written waits behind this source, if it was not lost with an earlier one."""
    return written is not None and (written.topic_id, written.delay_topic_uid) == (
        source.topic_id,
        source.delay_topic_uid,
    )


def _is_by_this_spec(written: WrittenRecord, digest: str, record: RecurringRecord) -> bool:
    """Return whether what waits recurs by the rule that the object has now, and not by one that it had before."""
    assert record.status is not None
    is_same = record.status.observed_generation == record.metadata.generation
    return written.digest == digest or (written.digest is None and is_same)


def _unknown(written: WrittenRecord | None) -> WrittenRecord | None:
    """Return what was written as that of which nobody knows whether it still recurs."""
    return written.model_copy(update={"digest": None, "at": None}) if written is not None else None


def _recurrence(record: RecurringRecord, now_ms: int) -> Recurrence | None:
    """Return the recurrence of a record that is written now; None where it has ended."""
    until = record.spec.until
    if until is not None and until.ms < now_ms:
        return None
    return read_recurrence(record.spec.controls(_created_ms(record)), now_ms)


def _created_ms(record: RecurringRecord) -> int:
    created = record.metadata.creation_timestamp
    return round(created.timestamp() * 1_000) if created is not None else 0


def _partition(record: RecurringRecord, source: Source, known: WrittenRecord | None) -> int:
    return known.partition if known is not None else crc32(_uid(record)) % source.partitions


def _uid(record: RecurringRecord) -> bytes:
    return (record.metadata.uid or "").encode()


def _message(record: RecurringRecord, source: Source, partition: int, now_ms: int) -> NewRecord:
    headers = record.spec.headers_of(_uid(record), _created_ms(record))
    key, value = (part.encode() if part is not None else None for part in (record.spec.key, record.spec.value))
    return NewRecord(source.topic, partition, key, value, headers, now_ms)


def _cancel(record: RecurringRecord, topic: str, partition: int, now_ms: int) -> NewRecord:
    key = record.spec.key.encode() if record.spec.key is not None else None
    return NewRecord(topic, partition, key, None, [(DELIVER_ID, _uid(record)), (DELIVER_ACTION, ACTION_CANCEL)], now_ms)


def _digest(message: NewRecord) -> str:
    """Return the digest of what is written, whenever that is."""
    parts = [message.key, message.value, *(part for header in message.headers for part in header)]
    return sha256(json.dumps([None if part is None else str(part) for part in parts]).encode()).hexdigest()


def _written(message: NewRecord, digest: str, source: Source) -> WrittenRecord:
    return WrittenRecord.model_validate(
        {
            "topic": source.topic,
            "topicId": source.topic_id,
            "delayTopicUid": source.delay_topic_uid,
            "partition": message.partition,
            "digest": digest,
            "at": instant(message.timestamp_ms),
        },
        by_alias=True,
        by_name=False,
    )


def _news(
    seen: RecurringObservation,
    before: RecurringRecordStatus | None,
    condition: Condition,
    written: WrittenRecord | None,
    next_ms: int | None,
    deliveries: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Return the document to apply as the status; None where it would say what it says already.

    Without `deliveries` it says the same of them as before.
    """
    assert seen.document is not None
    metadata = seen.document["metadata"]
    generation = metadata.get("generation")
    known = before.to_document() if before is not None else {}
    is_stalled = condition.status is FALSE and condition.reason == "InvalidSpec"
    conditions = [condition]
    if is_stalled:
        conditions.append(Condition(ConditionType.STALLED, TRUE, condition.reason, condition.message))
    elif condition.reason in ("Waiting", "Writing"):
        conditions.append(Condition(ConditionType.RECONCILING, TRUE, condition.reason, condition.message))
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "conditions": merged(known.get("conditions") or (), conditions, generation, seen.now_ms),
        **({"next": instant(next_ms)} if next_ms is not None else {}),
        **(shown(before) if deliveries is None else deliveries),
        **({"written": written.to_document()} if written is not None else {}),
    }
    if _significant(status) == _significant(known):
        return None
    return {
        "apiVersion": API_VERSION,
        "kind": "RecurringRecord",
        "metadata": {name: metadata[name] for name in ("name", "namespace", "uid") if name in metadata},
        "status": status,
    }


def _significant(status: Mapping[str, Any]) -> object:
    """Return what is worth a write: the words about servers that are away change with each look."""
    conditions = {
        each["type"]: (
            *(each["status"], each["reason"], each.get("observedGeneration")),
            each.get("message") if each["status"] != str(UNKNOWN) else None,
        )
        for each in status.get("conditions") or ()
    }
    times = (instant_ms(text) if (text := status.get(name)) else None for name in ("next", "last"))
    told = (status.get(name) for name in ("observedGeneration", "delivered", "missed", "written"))
    return conditions, *times, *told
