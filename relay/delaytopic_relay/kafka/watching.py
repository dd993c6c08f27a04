"""Edge: what is asked of the brokers now and then while the source is read, and is not waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupState, IsolationLevel
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    ConsumerGroupDescription,
    ListOffsetsResultInfo,
    TopicDescription,
)

from delaytopic_process.open_transactions import OpenTransaction, StableEnds
from delaytopic_relay.core.membership import Unowned
from delaytopic_relay.core.progress import usual_id
from delaytopic_relay.core.recovery import SourceTopic

ENDS_AGAIN_S = 5.0
"""The age that the end of a paused partition may have, and that of a last stable offset."""
GROUP_AGAIN_S = 1.0
"""The time between two looks at a group that is not at rest, or leaves partitions without an owner."""

TOPIC_AGAIN_S = 5.0
"""The time between two looks at which topic has the source's name."""

AskEnds = Callable[[Collection[int], IsolationLevel], Mapping[int, "Future[ListOffsetsResultInfo]"]]
"""Asks the brokers for the ends of partitions of the source as readers of that level see them, and does not wait."""
GIVE_UP_GROUP_S = 10.0
"""The time after which the group is asked anew, by another client."""
AskGroup = Callable[[], "tuple[Future[ConsumerGroupDescription], Future[TopicDescription]]"]
"""Asks the brokers for the group and the source, and does not wait."""
OpenGroup = Callable[[], AskGroup]
"""Connects what asks for the group; the connection ends when nobody refers to it."""

AskTopic = Callable[[], "Future[TopicDescription]"]
"""Asks the brokers which topic has the source's name, and does not wait."""


class TopicWatch:
    """Looks now and then whether the topic's name is still that of the same topic, without waiting."""

    def __init__(self, topic: SourceTopic, ask: AskTopic) -> None:
        self._topic = topic
        self._ask = ask
        self._asked: Future[TopicDescription] | None = None
        self._again_s = 0.0

    def sees_another(self, now_s: float) -> bool:
        """Take the last answer, and ask when there is none; no answer says nothing."""
        if self._asked is not None and self._asked.done():
            asked, self._asked = self._asked, None
            if asked.exception() is not None:
                return False
            found = self._topic._replace(topic_id=usual_id(str(asked.result().topic_id)))
            return not found.same_as(self._topic)
        if self._asked is None and now_s >= self._again_s:
            self._again_s = now_s + TOPIC_AGAIN_S
            self._asked = self._ask()
        return False


class PausedEnds:
    """The ends of paused partitions: the client learns an end from its fetches, and fetches nothing of these."""

    def __init__(self, ask: AskEnds) -> None:
        self._ask = ask
        self._paused: set[int] = set()
        self._known: dict[int, int] = {}
        self._asked: Mapping[int, Future[ListOffsetsResultInfo]] = {}
        self._again_s = 0.0

    def paused(self, partitions: Iterable[int]) -> None:
        """Take note that these are paused."""
        self._paused.update(partitions)

    def resumed(self, partitions: Iterable[int]) -> None:
        """Take note that these are not paused any more."""
        for partition in partitions:
            self._paused.discard(partition)
            self._known.pop(partition, None)

    def known(self, now_s: float) -> dict[int, int]:
        """Return the ends as last told, and ask again when these are old; no answer leaves what was known."""
        if self._asked and all(answer.done() for answer in self._asked.values()):
            told = {one: answer.result().offset for one, answer in self._asked.items() if answer.exception() is None}
            self._known.update({one: end for one, end in told.items() if one in self._paused})
            self._asked = {}
        if self._paused and not self._asked and now_s >= self._again_s:
            self._again_s = now_s + ENDS_AGAIN_S
            self._asked = self._ask(self._paused, IsolationLevel.READ_UNCOMMITTED)
        return dict(self._known)


class OpenTransactions:
    """Looks now and then up to where partitions can be read, without waiting."""

    def __init__(self, ask: AskEnds) -> None:
        self._ask = ask
        self._stable = StableEnds()
        self._asked: Mapping[int, Future[ListOffsetsResultInfo]] = {}
        self._again_s = 0.0

    def known(self, ends: Mapping[int, int], ahead: Collection[int], now_s: float) -> dict[int, OpenTransaction]:
        """Return what was told, and ask again when that is old. Only what is `ahead` of the reader can be held."""
        if self._asked and all(answer.done() for answer in self._asked.values()):
            for partition, answer in self._asked.items():
                if answer.exception() is None:
                    self._stable.told(partition, answer.result().offset, time.time_ns() // 1_000_000)
            self._asked = {}
        self._stable.keep(ahead)
        if ahead and not self._asked and now_s >= self._again_s:
            self._again_s = now_s + ENDS_AGAIN_S
            self._asked = self._ask(ahead, IsolationLevel.READ_COMMITTED)
        return self._stable.open(ends)


class GroupWatch:
    """Looks at the group after each assignment under a name, until all partitions have their owners."""

    def __init__(self, open_group: OpenGroup) -> None:
        self._open = open_group
        self._ask: AskGroup | None = None
        self._unowned = Unowned()
        self._asked: tuple[Future[ConsumerGroupDescription], Future[TopicDescription]] | None = None
        self._watches = False
        self._again_s = self._give_up_s = 0.0

    def watch(self) -> None:
        """Begin to look."""
        self._watches = True

    def rest(self) -> None:
        """Look no more."""
        self._watches, self._asked, self._ask = False, None, None

    def lacks_owners(self, now_s: float) -> bool:
        """Return whether it is time to leave and join again; takes the last answer, and asks when there is none."""
        if not self._watches:
            return False
        if self._asked is None:
            if now_s >= self._again_s:
                self._again_s, self._give_up_s = now_s + GROUP_AGAIN_S, now_s + GIVE_UP_GROUP_S
                self._ask = self._ask or self._open()
                self._asked = self._ask()
            return False
        if not all(answer.done() for answer in self._asked):
            if now_s >= self._give_up_s:
                self._asked = self._ask = None
            return False
        unowned, self._asked = self._unowned_of(*self._asked), None
        lasts = self._unowned.lasts(unowned or (), int(now_s * 1_000))
        if lasts or unowned == set():
            self.rest()
        return lasts

    def _unowned_of(self, group: Future[ConsumerGroupDescription], topic: Future[TopicDescription]) -> set[int] | None:
        """Return the partitions that nobody has; None without an answer, or while the group is not at rest."""
        if group.exception() is not None or topic.exception() is not None:
            return None
        found = group.result()
        if found.state is not ConsumerGroupState.STABLE:
            return None
        owned = (each.partition for member in found.members for each in member.assignment.topic_partitions)
        return {each.id for each in topic.result().partitions}.difference(owned)
