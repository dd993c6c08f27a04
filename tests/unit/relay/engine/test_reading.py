from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.relay.native_records import record

from delaytopic_api.values import Dialect
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Command, Ignore, SourceMessage
from delaytopic_relay.core.rules import READER, Declared, Generation, Rules
from delaytopic_relay.dialects import dialect_by
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.errors import UnknownRules

RULES = [Rules(Dialect.NATIVE, delay_ms, "") for delay_ms in (1_000, 2_000, 3_000)]
GENERATIONS = [Generation(since, 0, NOTHING_DELIVERED, rules) for since, rules in zip((0, 5, 7), RULES, strict=True)]


class Telling:
    """A dialect that tells by which rules it read."""

    def __init__(self, rules: Rules, told: list[tuple[int, list[int]]]) -> None:
        self._rules, self._told = rules, told

    def read(self, message: SourceMessage) -> Command:
        return Ignore(message.offset() or 0)

    def read_all(self, messages: Sequence[SourceMessage]) -> list[Command]:
        self._told.append((self._rules.max_delay_ms, [message.offset() or 0 for message in messages]))
        return [self.read(message) for message in messages]


@pytest.mark.parametrize(
    ("offsets", "read"),
    [
        ([0, 3, 4], [(1_000, [0, 3, 4])]),
        ([4, 5, 6, 7, 9], [(1_000, [4]), (2_000, [5, 6]), (3_000, [7, 9])]),
        ([4, 8], [(1_000, [4]), (3_000, [8])]),
        ([7, 8], [(3_000, [7, 8])]),
        ([], []),
    ],
)
def test_records_are_read_by_the_rules_in_force_at_their_offset(
    offsets: list[int], read: list[tuple[int, list[int]]]
) -> None:
    told: list[tuple[int, list[int]]] = []
    reading = Reading(Declared(RULES[2]), lambda rules: Telling(rules, told))
    reading.follow(3, GENERATIONS)

    commands = reading.read_all([record(offset=offset) for offset in offsets])

    assert (told, commands) == (read, [Ignore(offset) for offset in offsets])


def test_nothing_is_read_of_a_partition_that_is_not_here_any_more() -> None:
    reading = Reading(Declared(RULES[2]), lambda rules: Telling(rules, []))
    reading.follow(3, GENERATIONS)
    reading.forget([3])

    assert reading.read_all([record(offset=3)]) == []


def test_rules_of_another_version_of_the_reader_are_refused_by_name() -> None:
    reading = Reading(Declared(RULES[2]), lambda rules: dialect_by(rules, "target"))

    with pytest.raises(UnknownRules, match=f"read by version 9 of the reader, and this relay has version {READER}"):
        reading.check([GENERATIONS[0]._replace(rules=RULES[0]._replace(reader=9))])
