from __future__ import annotations

from delaytopic_process.open_transactions import LASTS_MS, OpenTransaction, StableEnds

NOW_MS = 1_795_269_600_000


def told(*looks: tuple[int, int]) -> StableEnds:
    """Partition 3, of which these stable ends were told so many milliseconds after now."""
    ends = StableEnds()
    for stable, after_ms in looks:
        ends.told(3, stable, NOW_MS + after_ms)
    return ends


def test_a_stable_end_that_is_told_twice_is_that_of_an_open_transaction_and_holds_back_all_behind_it() -> None:
    assert told((100, 0), (100, 5_000)).open({3: 140}) == {3: OpenTransaction(100, NOW_MS, held_back=40)}


def test_one_that_moves_is_that_of_transactions_that_end() -> None:
    assert told((100, 0), (120, 5_000)).open({3: 140}) == {}


def test_one_that_is_told_once_says_nothing_yet() -> None:
    assert told((100, 0)).open({3: 140}) == {}


def test_one_reading_that_is_told_twice_is_no_second_one() -> None:
    assert told((100, 0), (100, 0)).open({3: 140}) == {}


def test_an_end_that_is_stable_holds_nothing_back() -> None:
    assert told((140, 0), (140, 5_000)).open({3: 140}) == {}


def test_the_next_transaction_is_open_since_it_was_first_seen_itself() -> None:
    ends = told((100, 0), (100, 5_000), (150, 10_000), (150, 15_000))

    assert ends.open({3: 160}) == {3: OpenTransaction(150, NOW_MS + 10_000, held_back=10)}


def test_a_partition_that_was_read_to_its_end_is_forgotten() -> None:
    ends = told((100, 0), (100, 5_000))

    ends.keep(())
    ends.told(3, 100, NOW_MS + 10_000)

    assert (ends.open({3: 140}), len(ends)) == ({}, 1)


def test_a_transaction_is_worth_a_word_once_a_coordinator_would_have_ended_a_usual_one() -> None:
    found = OpenTransaction(100, NOW_MS, held_back=40)

    assert [found.lasts(NOW_MS + age_ms) for age_ms in (LASTS_MS - 1, LASTS_MS)] == [False, True]


def test_the_sentence_names_the_place_the_time_and_how_to_find_the_producer() -> None:
    assert OpenTransaction(100, NOW_MS, held_back=40).describe() == (
        "a producer's transaction holds back 40 source offsets from 100 on, and is open since 2026-11-21T14:00:00Z at "
        "least; what is behind it is read once it ends. kafka-transactions.sh describe-producers tells whose it is, by "
        "this CurrentTransactionStartOffset: see the runbook DelaySourceHeldBack"
    )
