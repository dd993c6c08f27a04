"""Caches of a cluster's topics and of who is in its groups. Pure but for their locks; times are arguments.

A thousand DelayTopics ask for three topics each; together they are a few requests. The settings of a topic cost ten
times what else there is to know of it, and change hardly ever: they are read more seldom.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from delaytopic_operator.errors import OperatorError
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts

KEPT_S: Final = 60.0
"""The time for which an answer counts."""
SOON_S: Final = 30.0
"""An older one is read again along with others."""
UNASKED_S: Final = 3_600.0
"""A topic that nobody has asked for since is forgotten."""
MOST_TOGETHER: Final = 500
MEMBERS_KEPT_S: Final = 20.0
"""The time for which it counts who is in a group: clusters come and go with people."""
MEMBERS_SOON_S: Final = 240.0
"""An older answer is read again along with others: as installed, each group is asked for once in five minutes."""
MOST_GROUPS: Final = 300


class Recall(NamedTuple):
    """Some topics as far as they are known, and those to read: the unknown ones first."""

    known: Mapping[str, TopicFacts]
    to_read: list[str]


class _Known(NamedTuple):
    read_s: float
    settings_read_s: float
    facts: TopicFacts


class TopicMemory:
    """Topics that exist, each with the time it was read at; what is missing is never remembered."""

    def __init__(self, settings_kept_s: float) -> None:
        """Settings count for `settings_kept_s`, as long as the topic is the same one."""
        self._settings_kept_s = settings_kept_s
        self._lock = threading.Lock()
        self._read: dict[str, _Known] = {}
        self._asked_s: dict[str, float] = {}
        self._changed_s: dict[str, float] = {}
        self._expected: dict[str, None] = {}
        """The names that somebody waits to ask for, in their order."""
        self._configs: dict[frozenset[tuple[str, str]], Mapping[str, str]] = {}

    def known(self, names: Iterable[str], now_s: float) -> Mapping[str, TopicFacts] | None:
        """Return what is known of these names; None where some are not, which are read along with the next question.

        So whoever has to wait until a question is answered is answered by the next one, together with all who wait.
        """
        wanted = list(names)
        with self._lock:
            found = self._known(wanted, now_s)
            self._expected.update(dict.fromkeys(name for name in wanted if name not in found))
        return found if len(found) == len(set(wanted)) else None

    def recall(self, names: Iterable[str], now_s: float) -> Recall:
        """Return what is known of these names, and what has to be read to know the rest."""
        with self._lock:
            wanted = list(names)
            known = self._known(wanted, now_s)
            stale = [name for name in wanted if name not in known]
            if not stale:
                return Recall(known, [])
            along = [*self._expected, *(name for name in self._asked_s if self._age_s(name, now_s) >= SOON_S)]
            to_read = list(dict.fromkeys([*stale, *along]))[: max(MOST_TOGETHER, len(stale))]
            for name in to_read:
                self._expected.pop(name, None)
            return Recall(known, to_read)

    def settings_of(self, topics: Iterable[TopicFacts], now_s: float) -> dict[str, TopicFacts]:
        """Return those of these topics whose settings still count, as they were known last."""
        with self._lock:
            known = {each.name: (each, self._read.get(each.name)) for each in topics}
        return {
            name: of.facts
            for name, (now, of) in known.items()
            if of is not None
            and of.facts.topic_id == now.topic_id
            and now_s - of.settings_read_s < self._settings_kept_s
        }

    def remember(self, seen: KafkaView, now_s: float, not_read: Collection[str] = ()) -> None:
        """Keep what was read from `now_s` on, but for the settings of those that were `not_read`.

        Equal settings are held once.
        """
        with self._lock:
            for name in (*seen.missing, *seen.forbidden):
                self._read.pop(name, None)
            for name, facts in seen.topics.items():
                if self._changed_s.get(name, 0.0) < now_s:
                    settings_s = self._read[name].settings_read_s if name in not_read else now_s
                    self._read[name] = _Known(now_s, settings_s, self._shared(facts))
            self._forget_unasked(now_s)

    def forget(self, name: str, now_s: float) -> None:
        """It was changed: what was read before, or is being read just now, does not count."""
        with self._lock:
            self._read.pop(name, None)
            self._changed_s[name] = now_s

    def _known(self, wanted: Iterable[str], now_s: float) -> dict[str, TopicFacts]:
        self._asked_s.update(dict.fromkeys(wanted, now_s))
        return {name: self._read[name].facts for name in wanted if self._age_s(name, now_s) < KEPT_S}

    def _age_s(self, name: str, now_s: float) -> float:
        known = self._read.get(name)
        return now_s - known.read_s if known is not None else UNASKED_S

    def _shared(self, facts: TopicFacts) -> TopicFacts:
        if facts.config is None:
            return facts
        key = frozenset(facts.config.items())
        return replace(facts, config=self._configs.setdefault(key, facts.config))

    def _forget_unasked(self, now_s: float) -> None:
        unasked = [name for name, asked_s in self._asked_s.items() if now_s - asked_s >= UNASKED_S]
        for name in unasked:
            del self._asked_s[name]
            self._read.pop(name, None)
        self._changed_s = {name: at_s for name, at_s in self._changed_s.items() if now_s - at_s < KEPT_S}
        if len(self._configs) > 2 * len(self._read) + 1:
            self._configs.clear()


ReadMembers = Callable[[Collection[str]], Mapping[str, Sequence[str] | OperatorError]]
"""Reads the names of the members of groups now; raises errors of the operator's tree where nobody answers."""


class GroupMembers:
    """Thread-safe. Nobody waits for a question about others' groups."""

    def __init__(self, read: ReadMembers) -> None:
        """Take what reads groups, some hundred at most."""
        self._read = read
        self._lock = threading.Lock()
        self._asked_s: dict[str, float] = {}
        self._answers: dict[str, tuple[float, Sequence[str]]] = {}
        self._is_reading_along = False

    def of(self, group_id: str, now_s: float, *, fresh: bool = False) -> Sequence[str]:
        """Return the names of a group's members, as of some seconds ago at most, or as of now (`fresh`).

        Raises what the reading raises.
        """
        with self._lock:
            self._asked_s[group_id] = now_s
            known = self._answers.get(group_id)
            if known is not None and not fresh and now_s - known[0] < MEMBERS_KEPT_S:
                return known[1]
            along = [] if self._is_reading_along else self._soon(group_id, now_s)
            self._is_reading_along = self._is_reading_along or bool(along)
        try:
            answers = self._read([group_id, *along])
        finally:
            if along:
                with self._lock:
                    self._is_reading_along = False
        found = answers[group_id]
        with self._lock:
            self._answers |= {name: (now_s, each) for name, each in answers.items() if not isinstance(each, Exception)}
            self._forget_unasked(now_s)
        if isinstance(found, OperatorError):
            raise found
        return found

    def _soon(self, group_id: str, now_s: float) -> list[str]:
        """List the groups that are asked for soon, those first that were read first."""
        old = sorted((at_s, name) for name, (at_s, _) in self._answers.items() if now_s - at_s >= MEMBERS_SOON_S)
        return [name for _, name in old if name != group_id][: MOST_GROUPS - 1]

    def _forget_unasked(self, now_s: float) -> None:
        for name in [name for name, asked_s in self._asked_s.items() if now_s - asked_s >= UNASKED_S]:
            del self._asked_s[name]
            self._answers.pop(name, None)
