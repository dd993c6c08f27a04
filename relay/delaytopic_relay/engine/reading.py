"""The reading of records, each by the rules in force at its offset."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from delaytopic_relay.core.commands import Command, Dialect, SourceMessage
from delaytopic_relay.core.rules import Declared, Generation, Rules, moved

DialectOf = Callable[[Rules], Dialect]
"""Makes the dialect that reads by some rules. Raises `UnknownRules`."""


class Reading:
    """The dialects of the partitions of one relay."""

    def __init__(self, declared: Declared, dialect_of: DialectOf) -> None:
        """`declared` are the relay's own rules."""
        self.declared = declared
        self._dialect_of = dialect_of
        self._made: dict[Rules, Dialect] = {}
        self._by_partition: dict[int, list[tuple[int, Dialect]]] = {}

    def check(self, generations: Iterable[Generation]) -> None:
        """Raise `UnknownRules` for generations that this relay cannot read by."""
        for generation in generations:
            self._dialect(generation.rules)

    def _dialect(self, rules: Rules) -> Dialect:
        if rules not in self._made:
            self._made[rules] = self._dialect_of(rules)
        return self._made[rules]

    def follow(self, partition: int, generations: Sequence[Generation]) -> None:
        """Read a partition by these generations from now on."""
        self._by_partition[partition] = [(each.since, self._dialect(each.rules)) for each in generations]

    def move(self, shift_ms: int) -> None:
        """Read what comes by a clock that is ahead by so much, from where that is committed."""
        rules, declared_ms = self.declared
        self.declared = Declared(moved(rules, rules._replace(shift_ms=shift_ms)), declared_ms)

    def forget(self, partitions: Iterable[int]) -> None:
        """Read nothing of these partitions any more."""
        for partition in partitions:
            self._by_partition.pop(partition, None)

    def read_all(self, messages: Sequence[SourceMessage]) -> list[Command]:
        """Turn records of one partition into commands, in their order; none of a partition that is nobody's here."""
        dialects = self._by_partition.get(messages[0].partition() or 0) if messages else None
        if not dialects:
            return []
        since, dialect = dialects[-1]
        if (messages[0].offset() or 0) >= since:
            return dialect.read_all(messages)
        commands: list[Command] = []
        first = 0
        for place, (_, dialect) in enumerate(dialects):
            end = len(messages)
            if place + 1 < len(dialects):
                end = bisect_right(messages, dialects[place + 1][0] - 1, lo=first, key=_offset)
            if end > first:
                commands += dialect.read_all(messages[first:end])
            first = end
        return commands


def _offset(message: SourceMessage) -> int:
    return message.offset() or 0
