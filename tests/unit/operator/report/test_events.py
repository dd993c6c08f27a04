"""Tests of which Events are written, and how they look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delaytopic_operator.report.events import BURST, EventBudget, EventRecord, NewEvent, Repeated, reference

TOPIC = {
    "apiVersion": "delaytopic.dev/v1beta1",
    "kind": "DelayTopic",
    "metadata": {"namespace": "shop", "name": "reminders", "uid": "u-1", "resourceVersion": "7"},
}
NOW_MS = 1_795_269_686_270


def happening(note: str = "made topic reminders", uid: str = "u-1") -> EventRecord:
    return EventRecord(reference(TOPIC) | {"uid": uid}, "TopicCreated", note, "Normal", "Reconcile")


def test_an_event_says_what_happened_to_what() -> None:
    written = EventBudget("operator-1").write(happening(), NOW_MS)

    assert isinstance(written, NewEvent)
    name = written.document["metadata"].pop("name")
    assert name.startswith("reminders.")
    assert written.document == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop"},
        "eventTime": "2026-11-21T14:01:26.270000Z",
        "type": "Normal",
        "reason": "TopicCreated",
        "action": "Reconcile",
        "note": "made topic reminders",
        "regarding": {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayTopic",
            "namespace": "shop",
            "name": "reminders",
            "uid": "u-1",
            "resourceVersion": "7",
        },
        "reportingController": "delaytopic.dev/operator",
        "reportingInstance": "operator-1",
    }


def test_what_happens_again_is_counted() -> None:
    budget = EventBudget("operator-1")
    first = budget.write(happening(), NOW_MS)
    budget.write(happening(), NOW_MS + 1_000)

    third = budget.write(happening(), NOW_MS + 2_000)

    assert isinstance(first, NewEvent)
    series = {"count": 3, "lastObservedTime": "2026-11-21T14:01:28.270000Z"}
    assert third == Repeated("shop", first.document["metadata"]["name"], {"series": series})


def test_after_a_pause_or_with_other_words_it_is_another_event() -> None:
    budget = EventBudget("operator-1")
    events = [
        budget.write(happening(), NOW_MS),
        budget.write(happening("made topic b"), NOW_MS),
        budget.write(happening(), NOW_MS + 360_000),
    ]

    assert len({event.document["metadata"]["name"] for event in events if isinstance(event, NewEvent)}) == 3


def test_an_event_that_could_not_be_written_is_begun_anew() -> None:
    budget = EventBudget("operator-1")
    budget.write(happening(), NOW_MS)

    budget.forget(happening())

    assert isinstance(budget.write(happening(), NOW_MS), NewEvent)


def test_much_ado_about_one_object_leaves_room_for_others() -> None:
    budget = EventBudget("operator-1")

    written = [budget.write(happening(f"note {number}"), NOW_MS) for number in range(100)]

    assert sum(event is not None for event in written) == BURST
    assert budget.write(happening(uid="u-2"), NOW_MS) is not None
    assert budget.write(happening("later"), NOW_MS + 300_000) is not None


def test_the_whole_clusters_objects_have_their_events_in_default() -> None:
    delay_class = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayClass", "metadata": {"name": "c", "uid": "u"}}
    about = EventRecord(reference(delay_class), "ClassChanged", "x", "Normal", "Reconcile")

    written = EventBudget("operator-1").write(about, NOW_MS)

    assert isinstance(written, NewEvent)
    assert written.document["metadata"]["namespace"] == "default"
    assert "namespace" not in written.document["regarding"]


@given(st.text(max_size=3_000))
def test_notes_are_of_the_length_that_kubernetes_takes(note: str) -> None:
    written = EventBudget("operator-1").write(happening(note), NOW_MS)

    assert isinstance(written, NewEvent)
    assert len(written.document["note"]) <= 1_024
