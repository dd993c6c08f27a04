"""The plan: documents and a cluster's state in, outcome out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delaytopic_api.documents import ConditionType
from delaytopic_api.values import AutoscalingMode
from delaytopic_operator.decide import revoked
from delaytopic_operator.decide.planner import decide_scaling
from delaytopic_operator.decide.relay_objects import replicas
from delaytopic_operator.decide.rules_in_force import edit_sentence
from delaytopic_operator.model.conditions import FALSE
from delaytopic_operator.model.declared_rules import fields_of
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import find_record
from delaytopic_operator.observe.observation import PAUSE, is_paused
from delaytopic_operator.offline.changes import own_step, refused_change
from delaytopic_operator.offline.cluster_view import (
    ClusterState,
    ClusterView,
    LiveTopic,
    judge,
    key_of,
    lacks_namespace,
    live_topic,
    takes_labels_for_granted,
    view_after,
    view_before,
)
from delaytopic_operator.offline.documents import Document, Documents
from delaytopic_operator.offline.in_force import in_force
from delaytopic_operator.offline.observation import observe
from delaytopic_operator.offline.outcome import Judgement, Outcome, Step, TopicOutcome
from delaytopic_operator.offline.recurring import recurring_outcomes
from delaytopic_operator.offline.simulation import Simulated, simulate, steps_of
from delaytopic_operator.resources import connection_files
from delaytopic_operator.rules.validate import Accepted, Refusal, relay_namespace

KAFKA_NOT_ASKED = (
    "Kafka is not asked: topics are taken to be as the status of their DelayTopic says, those that no status speaks of "
    "as missing (one that exists after all is refused with management: Create)"
)
NO_SECRETS = "Secrets are not read: they are taken to be there, and unchanged"
ASSUMPTIONS = (KAFKA_NOT_ASKED, NO_SECRETS)


def make_plan(documents: Documents, state: ClusterState, now_ms: int) -> Outcome:
    """Return the outcome of applying the documents."""
    before, after = view_before(state, now_ms), view_after(documents, state, now_ms)
    written = {key_of(each): each for each in documents.topics}
    concerned = [key for key in _concerned(documents, before) if key not in written]
    topics = [_outcome(key, written.get(key), before, after) for key in [*written, *concerned]]
    against = "the cluster" if state.is_there else "nothing: as if all of it were new"
    notes = [*state.notes, *_others(documents)]
    around, recurring = (
        list(_around(documents, state, after)),
        recurring_outcomes(documents, after, {each.key for each in topics}),
    )
    return Outcome(against, around, topics, recurring, notes, ASSUMPTIONS)


def _concerned(documents: Documents, before: ClusterView) -> list[Key]:
    """Return the DelayTopics of the cluster whose class or namespace is in the files."""
    classes, namespaces = (
        {each["metadata"]["name"] for each in kind} for kind in (documents.classes, documents.namespaces)
    )
    live = {key: live_topic(before, key) for key in before.topics} if classes or namespaces else {}
    return [
        key
        for key, each in live.items()
        if each is not None and (each.settings.class_name in classes or key.namespace in namespaces)
    ]


def _around(documents: Documents, state: ClusterState, after: ClusterView) -> Iterator[Step]:
    """Yield the steps for namespaces and classes."""
    for each in documents.namespaces:
        name = each["metadata"]["name"]
        if state.is_there and state.namespaces.get(name) is None:
            yield Step("Create", f"Namespace {name}")
    there = {each["metadata"]["name"]: each for each in state.classes}
    applied = {each["metadata"]["name"]: each for each in after.classes}
    for each in documents.classes:
        name = each["metadata"]["name"]
        step = own_step(each, there.get(name), applied[name])
        if step is not None and state.is_there:
            yield step


def _outcome(key: Key, written: Document | None, before: ClusterView, after: ClusterView) -> TopicOutcome:
    live, document = before.topics.get(key), after.topics[key]
    in_files = written is not None
    refusal = _refused_by_cluster(key, live, document, after)
    if refusal is not None:
        return _refused(key, refusal, live, after.state, in_files=in_files)
    verdict = judge(after, key)
    if isinstance(verdict, Refusal):
        told, done = _of_refused(key, verdict, before, after)
        return _refused(key, told, live, after.state, done, in_files=in_files)
    own = own_step(written, live, document) if written is not None and after.state.is_there else None
    effective = in_force(verdict, written if written is not None else document)
    notes = list(_notes(key, verdict, after))
    if "deletionTimestamp" in document["metadata"]:
        message = "it is being deleted: apply it again once it is gone, and its backlog goes on"
        return TopicOutcome(key, Judgement.REFUSED, "Terminating", message, effective, in_files=in_files)
    known = live_topic(before, key)
    notes += _of_what_waits(known, verdict, after.now_ms)
    seen = observe(after, key, verdict, known, _objects(key, verdict, before, after))
    simulated = simulate(seen)
    progress = simulated.last.progress
    if progress.stalled is not None:
        # Some of it may be done all the same; that must not hide what needs a person.
        refused = Refusal(progress.stalled_reason, progress.stalled)
        return _refused(key, refused, live, after.state, in_files=in_files)
    steps = [*([own] if own is not None else []), *steps_of(simulated.actions, seen, _has_record(key, before))]
    return TopicOutcome(
        key,
        Judgement.CHANGES if steps else Judgement.NOTHING,
        reason="Paused" if is_paused(seen) else None,
        message=f"the annotation {PAUSE} is set: the operator changes nothing" if is_paused(seen) else None,
        in_force=effective,
        steps=steps,
        relays=_relays(verdict, simulated),
        notes=[*notes, *_worries(simulated)],
        in_files=in_files,
    )


def _of_what_waits(live: LiveTopic | None, accepted: Accepted, now_ms: int) -> list[str]:
    """Return what an edit does to what waits; nothing where nothing waits yet."""
    if live is None or not live.status.get("relay"):
        return []
    pending = (live.status.get("backlog") or {}).get("pending")
    said = edit_sentence(fields_of(live.settings), fields_of(accepted.settings), pending, now_ms)
    return [said] if said is not None else []


def _worries(simulated: Simulated) -> Iterator[str]:
    """Yield the conditions that would be False once all was done."""
    for condition in simulated.last.conditions:
        if condition.type in (ConditionType.TOPICS_READY, ConditionType.BACKEND_READY) and condition.status is FALSE:
            yield f"{condition.type} would be False ({condition.reason}): {condition.message}"


def _refused_by_cluster(key: Key, live: Document | None, document: Document, after: ClusterView) -> Refusal | None:
    """Return the API server's own refusal, if there is one."""
    if lacks_namespace(after, key):
        return Refusal("NamespaceNotFound", f"there is no namespace {key.namespace}; make it first")
    change = refused_change(live, document) if live is not None else None
    return Refusal("ImmutableField", change) if change is not None else None


def _of_refused(
    key: Key, refusal: Refusal, before: ClusterView, after: ClusterView
) -> tuple[Refusal, tuple[Step, ...]]:
    """Return what is said, and what is done to relays that run, where the class no longer allows what they do."""
    formerly = judge(before, key) if key in before.topics else refusal
    if isinstance(formerly, Refusal) or "deletionTimestamp" in after.topics[key]["metadata"]:
        return refusal, ()
    seen = observe(after, key, refusal, live_topic(before, key), _objects(key, formerly, before, after))
    return revoked.told(seen, refusal), tuple(steps_of(simulate(seen).actions, seen, _has_record(key, before)))


def _refused(
    key: Key,
    refusal: Refusal,
    live: Document | None,
    state: ClusterState,
    steps: Sequence[Step] = (),
    *,
    in_files: bool,
) -> TopicOutcome:
    untouched = live is not None and not steps
    notes = ["nothing of what is there is touched: relays that run go on as before"] if untouched else []
    if refusal.reason == "ClassNotFound" and not state.is_there:
        notes.append("only the files were looked at: add that of its DelayClass with -f, or use --against cluster")
    return TopicOutcome(
        key, Judgement.REFUSED, refusal.reason, refusal.message, steps=steps, notes=notes, in_files=in_files
    )


def _objects(key: Key, verdict: Accepted, before: ClusterView, after: ClusterView) -> Sequence[Document] | None:
    """Return None where they were read; else those that the operator must have made from the cluster's documents."""
    if relay_namespace(key, verdict.delay_class, after.state.config) not in after.state.unseen:
        return None
    live = live_topic(before, key)
    if live is None or not live.status.get("relay"):
        return []
    formerly = judge(before, key)
    assert isinstance(formerly, Accepted)
    return simulate(observe(before, key, formerly, live, [])).seen.route.objects


def _has_record(key: Key, before: ClusterView) -> bool:
    made, place = before.state.made, before.state.config.namespace
    return find_record(made, key, place) is not None


def _notes(key: Key, accepted: Accepted, after: ClusterView) -> Iterator[str]:
    if accepted.delay_class is not None and takes_labels_for_granted(after, key):
        selector = accepted.delay_class.spec.access.namespace_selector
        if selector is not None:
            yield f"the namespace {key.namespace} is taken to have the labels that the class asks for"
    secrets = sorted(connection_files(accepted.settings).secrets)
    if secrets:
        namespace = relay_namespace(key, accepted.delay_class, after.state.config)
        yield f"relays read these Secrets of {namespace}: {', '.join(secrets)}"


def _relays(accepted: Accepted, simulated: Simulated) -> str:
    scaling = accepted.settings.autoscaling
    count = replicas(simulated.seen, accepted.settings, decide_scaling(simulated.seen))
    if scaling.mode is AutoscalingMode.FIXED:
        return f"{count}, as spec.relay.replicas says"
    if scaling.mode is AutoscalingMode.EXTERNAL:
        return f"{count}, and what an HPA or KEDA makes of it"
    most = scaling.max_replicas if scaling.max_replicas is not None else "as many as the source has partitions"
    return f"{count} now, then by the due times ahead: {scaling.min_replicas} to {most}"


def _others(documents: Documents) -> Iterator[str]:
    if documents.others:
        yield f"{documents.others} documents of other kinds are none of the operator's, and left out"
