"""The outcome of applying RecurringRecords, by the operator's own plan for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from delaytopic_api import RecurringRecord
from delaytopic_api.documents import ConditionType
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import validate
from delaytopic_api.policy import recurring_refusals, recurring_slots
from delaytopic_api.records import ACTION_CANCEL, DELIVER_ACTION
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.kafka_view import NewRecord
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.observation import Problem
from delaytopic_operator.offline.changes import NOT_YET_KNOWN, applied, own_step, refused_change
from delaytopic_operator.offline.cluster_view import ClusterView, judge, key_of, lacks_namespace
from delaytopic_operator.offline.documents import Document, Documents, name_of
from delaytopic_operator.offline.outcome import Judgement, RecurringOutcome, Step
from delaytopic_operator.recurring.plan import (
    BEYOND_MAX_DELAY,
    FINALIZER,
    Hindrance,
    RecurringObservation,
    RecurringPlan,
    Source,
    hindrance,
    plan_recurring,
)
from delaytopic_operator.rules.validate import Accepted, Refusal

_SHOWN: Final = 3
"""Times."""
_PARTITIONS: Final = 1
"""The partitions of a source that nobody knows yet; no plan tells the partition."""
_ONLY_FILES: Final = "only the files were looked at: add that of its DelayTopic with -f, or use --against cluster"


def recurring_outcomes(documents: Documents, after: ClusterView, touched: Collection[Key]) -> list[RecurringOutcome]:
    """Return the outcome of each RecurringRecord of the files, in their order, and of those of the cluster that an edit
    of their DelayTopic, one of `touched`, makes a difference to.
    """
    there = {key_of(each): each for each in after.state.recurring}
    written = {key_of(each): each for each in documents.recurring}
    others = (each for key, each in there.items() if key not in written and _delay_topic(key, each) in touched)
    around = (found for each in others if (found := _of_cluster(each, after)) is not None)
    return [*(_outcome(each, there.get(key), after) for key, each in written.items()), *around]


def _delay_topic(key: Key, document: Document) -> Key:
    return Key(key.namespace, str((document.get("spec") or {}).get("delayTopic")))


def _of_cluster(live: Document, after: ClusterView) -> RecurringOutcome | None:
    if "deletionTimestamp" in live["metadata"]:
        return None
    found = replace(_outcome(live, live, after), in_files=False)
    is_so_already = found.judgement is Judgement.REFUSED and found.reason == _ready(RecurringPlan(), live)[0]
    return None if is_so_already or found.judgement is Judgement.NOTHING else found


def _outcome(written: Document, live: Document | None, after: ClusterView) -> RecurringOutcome:
    key, document = key_of(written), applied(written, live, after.now_ms)
    try:
        record = validate(RecurringRecord, {**document, "status": None}, name_of(document))
    except ApiError as error:
        return RecurringOutcome(key, Judgement.REFUSED, "InvalidSpec", "; ".join(str(error).splitlines()))
    refusal = _refused_by_cluster(key, live, document, after)
    if refusal is not None:
        return RecurringOutcome(key, Judgement.REFUSED, refusal.reason, refusal.message)
    source = _source(record, after)
    if isinstance(source, Hindrance):
        notes = [_ONLY_FILES] if source.is_gone and not after.state.is_there else []
        problem = source.problem
        return RecurringOutcome(key, Judgement.REFUSED, problem.reason, problem.message, notes=notes)
    decided = plan_recurring(RecurringObservation(after.now_ms, document, source))
    own = own_step(written, live, document) if after.state.is_there else None
    steps = [*([own] if own is not None else []), *_steps(decided, document, source)]
    reason, message = _ready(decided, document)
    rests = reason in ("Suspended", "Ended")
    return RecurringOutcome(
        key,
        Judgement.CHANGES if steps else Judgement.NOTHING,
        reason if rests else None,
        message if rests else None,
        steps,
        [] if rests else [instant(each) for each in recurring_slots(record, after.now_ms, _SHOWN)],
    )


def _refused_by_cluster(key: Key, live: Document | None, document: Document, after: ClusterView) -> Refusal | None:
    """Return why nothing of it would be done, whatever its DelayTopic is like."""
    if lacks_namespace(after, key):
        return Refusal("NamespaceNotFound", f"there is no namespace {key.namespace}; make it first")
    if "deletionTimestamp" in document["metadata"]:
        return Refusal("Terminating", "it is being deleted: apply it again once it is gone")
    change = refused_change(live, document) if live is not None else None
    return Refusal("ImmutableField", change) if change is not None else None


def _source(record: RecurringRecord, after: ClusterView) -> Source | Hindrance:
    """Return the source that it would be written to, or why it would not be."""
    key = Key(record.metadata.namespace, record.spec.delay_topic)
    document = after.topics.get(key)
    verdict = judge(after, key) if document is not None else None
    reason = hindrance(key, document, verdict)
    if document is None or not isinstance(verdict, Accepted) or (reason is not None and reason.is_gone):
        assert reason is not None
        return reason
    problem = next(recurring_refusals(record, verdict.settings, after.now_ms), None)
    if problem is not None:
        word = reason.problem.reason if reason is not None else BEYOND_MAX_DELAY
        return Hindrance(Problem(word, f"{problem.path}: {problem.message}"))
    said: Mapping[str, Any] = (document.get("status") or {}).get("source") or {}
    topic_id, partitions = said.get("topicId", NOT_YET_KNOWN), said.get("partitions", _PARTITIONS)
    return Source(verdict.settings.source.topic, topic_id, partitions, document["metadata"]["uid"], verdict.settings)


def _steps(decided: RecurringPlan, document: Document, source: Source) -> Iterator[Step]:
    if decided.is_held is not None:
        yield Step("AddFinalizer" if decided.is_held else "RemoveFinalizer", FINALIZER)
    reason, message = _ready(decided, document)
    if decided.message is not None:
        yield Step(_action(decided.message, document, source), source.topic)
    elif reason == "Waiting":
        yield Step("ReplaceRecord", source.topic, message)


def _action(message: NewRecord, document: Document, source: Source) -> str:
    if (DELIVER_ACTION, ACTION_CANCEL) in message.headers:
        return "CancelRecord"
    written = (document.get("status") or {}).get("written") or {}
    is_there = (written.get("topicId"), written.get("delayTopicUid")) == (source.topic_id, source.delay_topic_uid)
    return "ReplaceRecord" if is_there else "WriteRecord"


def _ready(decided: RecurringPlan, document: Document) -> tuple[str | None, str | None]:
    """Return reason and message of the condition Ready, as it would be or as it is."""
    status = (decided.status or document).get("status") or {}
    for each in status.get("conditions") or ():
        if each["type"] == str(ConditionType.READY):
            return each["reason"], each["message"]
    return None, None
