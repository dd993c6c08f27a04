"""Topics that do not answer: whom that keeps waiting, what becomes of records for them, when they are tried again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from delaytopic_relay.delivery.reachability import (
    ANY,
    DOUBT_MS,
    FORGIVEN_MS,
    LASTS_MS,
    LOOK_MS,
    RARE_LOOK_MS,
    Destination,
    Reachability,
    blamed,
)

OWN, FURTHER = Destination("target", 2), Destination("other", 0)
SENDERS = {OWN: [2], FURTHER: [0, 1]}
WRONG = "it has no leader"
SENT_MS = 1_000
SINCE_MS = 1_795_269_686_270


def in_trouble(*destinations: Destination) -> Reachability:
    """Of what was sent at `SENT_MS` nothing was acknowledged."""
    reachability = Reachability(lambda topic: topic == "other")
    fails(reachability, *destinations)
    return reachability


def fails(reachability: Reachability, *destinations: Destination, sent_ms: int = SENT_MS) -> None:
    reasons = dict.fromkeys(destinations, WRONG)
    reachability.unanswered(SENDERS, reasons, sent_ms, SINCE_MS)


def look(reachability: Reachability, now_ms: int, **found: str | None) -> None:
    """A look finds this of the topics of these names; the time passes."""
    partitions = {"target": 2, "other": 0}
    reachability.seen({Destination(topic, partitions[topic]): wrong for topic, wrong in found.items()}, now_ms)
    reachability.pass_time(now_ms)


# -- who is to blame


@pytest.mark.parametrize("acknowledged", [True, False])
def test_those_are_to_blame_that_a_look_finds_bad(acknowledged: bool) -> None:
    assert blamed(SENDERS, {OWN: None, FURTHER: WRONG}, acknowledged=acknowledged) == {FURTHER: WRONG}


def test_without_a_finding_what_did_not_answer_is_to_blame_if_something_else_did() -> None:
    assert blamed(SENDERS, {OWN: None}, acknowledged=True).keys() == SENDERS.keys()


@pytest.mark.parametrize("found", [{}, {OWN: None, FURTHER: None}])
def test_if_nothing_at_all_answers_nobody_is_to_blame(found: dict[Destination, str | None]) -> None:
    assert blamed(SENDERS, found, acknowledged=False) == {}


def test_what_has_failed_before_is_to_blame_if_nothing_answers_but_a_look() -> None:
    found = {OWN: None, FURTHER: None}

    assert blamed(SENDERS, found, acknowledged=False, tried={FURTHER}).keys() == {FURTHER}
    assert blamed(SENDERS, {}, acknowledged=False, tried={FURTHER}) == {}


def test_what_is_bad_and_was_not_sent_to_is_not_to_blame() -> None:
    assert blamed({OWN: [2]}, {FURTHER: WRONG, Destination("target", 1): WRONG}, acknowledged=False) == {}


@pytest.mark.parametrize(
    ("sent_to", "bad"),
    [(Destination("other", 3), Destination("other", ANY)), (Destination("other", ANY), Destination("other", 3))],
)
def test_what_is_wrong_with_a_whole_topic_is_wrong_with_each_partition_and_the_other_way_round(
    sent_to: Destination, bad: Destination
) -> None:
    assert blamed({sent_to: [0]}, {bad: WRONG}, acknowledged=False) == {sent_to: WRONG}


# -- who waits


def test_those_wait_that_sent_there_and_no_others() -> None:
    reachability = in_trouble(OWN)

    assert [*reachability.held()] == [2]
    assert reachability.refused() == {}


def test_the_trouble_names_what_does_not_answer_since_when_and_why() -> None:
    held = in_trouble(OWN, FURTHER).held()

    assert held[2].text == f"target[2] has not answered since 2026-11-21T14:01:26.270Z: {WRONG}"
    assert held[0].text == f"other has not answered since 2026-11-21T14:01:26.270Z: {WRONG}"


def test_another_that_is_about_to_send_to_a_further_target_in_doubt_waits_with_them() -> None:
    reachability = in_trouble(FURTHER)

    assert reachability.wait_for("other", 7) is not None
    assert sorted(reachability.held()) == [0, 1, 7]


@pytest.mark.parametrize("topic", ["target", "another"])
def test_nobody_else_waits(topic: str) -> None:
    assert in_trouble(OWN).wait_for(topic, 7) is None


# -- what becomes of it


def test_a_further_target_that_stays_bad_is_refused_after_its_time_and_nobody_waits_any_more() -> None:
    reachability = in_trouble(FURTHER)

    look(reachability, SENT_MS + LASTS_MS - 1, other=WRONG)
    before = (sorted(reachability.held()), [*reachability.refused()])
    look(reachability, SENT_MS + LASTS_MS, other=WRONG)

    assert before == ([0, 1], [])
    assert ([*reachability.held()], [*reachability.refused()]) == ([], ["other"])


def test_its_time_is_over_without_another_look() -> None:
    reachability = in_trouble(FURTHER)
    look(reachability, SENT_MS + 100, other=WRONG)

    reachability.pass_time(SENT_MS + LASTS_MS)

    assert [*reachability.refused()] == ["other"]


def test_a_further_target_of_which_no_look_has_an_answer_is_not_refused() -> None:
    reachability = in_trouble(FURTHER)

    for after_ms in (100, LASTS_MS, 20 * LASTS_MS):
        look(reachability, SENT_MS + after_ms)

    assert (sorted(reachability.held()), reachability.refused()) == ([0, 1], {})


def test_a_topic_of_its_own_is_never_refused() -> None:
    reachability = in_trouble(OWN)

    look(reachability, SENT_MS + 100 * LASTS_MS, target=WRONG)

    assert ([*reachability.held()], reachability.refused()) == ([2], {})


def test_what_is_found_well_is_tried_again_at_once() -> None:
    reachability = in_trouble(OWN, FURTHER)

    look(reachability, SENT_MS + 100, target=None, other=None)

    assert (reachability.held(), reachability.refused()) == ({}, {})


def test_a_further_target_that_was_refused_is_tried_again_when_it_is_found_well() -> None:
    reachability = in_trouble(FURTHER)
    look(reachability, SENT_MS + LASTS_MS, other=WRONG)

    look(reachability, SENT_MS + 2 * LASTS_MS, other=None)

    assert reachability.refused() == {}


def test_a_further_target_that_is_found_well_and_fails_again_is_refused_at_once() -> None:
    reachability = in_trouble(FURTHER)
    look(reachability, SENT_MS + 100, other=None)

    fails(reachability, FURTHER, sent_ms=SENT_MS + 200)

    assert ([*reachability.held()], [*reachability.refused()]) == ([], ["other"])


@pytest.mark.parametrize("destination", [OWN, FURTHER])
def test_each_time_that_it_is_found_well_and_fails_again_it_is_believed_later_but_for_five_minutes_at_most(
    destination: Destination,
) -> None:
    reachability, now_ms, doubts_ms = in_trouble(destination), SENT_MS, []
    look(reachability, now_ms, **{destination.topic: None})

    for _ in range(9):
        now_ms += 1_000
        fails(reachability, destination, sent_ms=now_ms)
        failed_ms = now_ms
        while reachability.held() or reachability.refused():
            now_ms += 1_000
            look(reachability, now_ms, **{destination.topic: None})
        doubts_ms.append(now_ms - failed_ms)

    assert doubts_ms == [DOUBT_MS << doubled for doubled in range(6)] + [300_000] * 3


def test_what_does_not_fail_again_for_a_minute_is_forgiven() -> None:
    reachability = in_trouble(FURTHER)
    look(reachability, SENT_MS, other=None)

    reachability.pass_time(SENT_MS + FORGIVEN_MS - 1)
    before = len(reachability)
    reachability.pass_time(SENT_MS + FORGIVEN_MS)

    assert (before, len(reachability)) == (1, 0)


# -- looks


def test_what_has_failed_just_now_is_looked_at_often_and_later_more_rarely() -> None:
    reachability, looks_ms = in_trouble(OWN), list[int]()

    for now_ms in range(SENT_MS, SENT_MS + LASTS_MS + 5 * RARE_LOOK_MS, 100):
        if reachability.to_look_at(now_ms):
            looks_ms.append(now_ms)

    apart = [after - before for before, after in pairwise(looks_ms)]
    assert apart == [LOOK_MS] * (LASTS_MS // LOOK_MS) + [RARE_LOOK_MS] * 4


def test_what_is_tried_again_is_not_looked_at() -> None:
    reachability = in_trouble(OWN)
    look(reachability, SENT_MS, target=None)

    assert reachability.to_look_at(SENT_MS + 100_000) == set()


def test_a_look_at_another_partition_says_nothing() -> None:
    reachability = in_trouble(OWN)

    reachability.seen({Destination("target", 1): None, Destination("else", 2): None}, SENT_MS)

    assert [*reachability.held()] == [2]


def test_a_further_target_is_as_bad_as_the_worst_of_the_partitions_that_did_not_answer() -> None:
    reachability = in_trouble(FURTHER)
    reachability.unanswered({Destination("other", 5): [4]}, {Destination("other", 5): WRONG}, SENT_MS, SINCE_MS)

    reachability.seen({Destination("other", 0): None, Destination("other", 5): WRONG}, SENT_MS)

    assert sorted(reachability.held()) == [0, 1, 4]
