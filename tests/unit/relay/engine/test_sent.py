from __future__ import annotations

from tests.support.relay.schedules import schedule

from delaytopic_relay.engine.sent import SHARE, SentBatches


def test_what_a_tick_has_sent_is_known_until_it_is_settled() -> None:
    sent = SentBatches()
    first, second = [schedule(1_000, 1)], [schedule(1_000, 2)]

    sent.add(0, first)
    sent.add(1, second)
    known = sent.batches
    sent.settle()

    assert (known, sent.batches) == ([(0, first), (1, second)], [])


def test_what_is_settled_is_forgotten_in_turns_the_sooner_the_more_there_is() -> None:
    sent = SentBatches()
    for number in range(4 * SHARE):
        sent.add(0, [schedule(1_000, number)])
    sent.settle()

    left = []
    while sent.settled:
        sent.forget_some()
        left.append(sent.settled)

    assert (left[:2], len(left)) == ([4 * SHARE - 5, 4 * SHARE - 9], 32)


def test_no_more_than_one_settled_tick_is_kept() -> None:
    sent = SentBatches()
    sent.add(0, [schedule(1_000, 1)])
    sent.settle()
    sent.add(0, [schedule(1_000, 2)])
    sent.add(0, [schedule(1_000, 3)])

    sent.settle()

    assert sent.settled == 2
