from __future__ import annotations

from concurrent.futures import Future
from weakref import ref

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    ConsumerGroupDescription,
    TopicDescription,
)

from delaytopic_relay.kafka.watching import GIVE_UP_GROUP_S, GROUP_AGAIN_S, AskGroup, GroupWatch


class Connection:
    """Asks a coordinator that never answers."""

    def __call__(self) -> tuple[Future[ConsumerGroupDescription], Future[TopicDescription]]:
        return Future(), Future()


def test_the_connection_of_a_question_that_nobody_answers_is_dropped_and_another_one_asks() -> None:
    opened = []

    def open_group() -> AskGroup:
        connection = Connection()
        opened.append(ref(connection))
        return connection

    watch = GroupWatch(open_group)
    watch.watch()
    times_s = (0.0, GROUP_AGAIN_S, GIVE_UP_GROUP_S - 0.1, GIVE_UP_GROUP_S)

    alive = []
    for now_s in (*times_s, GIVE_UP_GROUP_S + GROUP_AGAIN_S):
        assert not watch.lacks_owners(now_s)
        alive.append([each() is not None for each in opened])

    # The client library aborts the process if a coordinator answers what was given up without the connection.
    assert alive == [[True], [True], [True], [False], [False, True]]


def test_a_group_that_is_at_rest_needs_no_connection() -> None:
    opened = []

    def open_group() -> AskGroup:
        connection = Connection()
        opened.append(ref(connection))
        return connection

    watch = GroupWatch(open_group)
    watch.watch()
    watch.lacks_owners(0.0)

    watch.rest()

    assert [each() for each in opened] == [None]
