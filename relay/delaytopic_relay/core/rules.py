"""Rules: everything by which a record is accepted or refused and gets its due time, id and target, and from which
source offset on. Pure.

A record has one key (due, offset) for ever, or C would not tell whether it is done. A DelayTopic's rules may be edited
while records wait, so a record belongs to the rules in force at its offset. These are committed with the progress, as
generations: each begins at an offset, which is the source's end when it is first committed. Below that lies all that a
relay may have read by former rules, entries of aborted ticks included.

A generation is done when the position has passed its end and the cursor the last time that it gave. Its end is then the
floor: all below is done, by whatever rules it would be read, so that nobody reads it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise, zip_longest
from operator import attrgetter
from typing import Final, NamedTuple

from delaytopic_api.values import CAPABILITIES, Dialect, Ids, may_wait_together
from delaytopic_relay.core.bucket_state import number_of
from delaytopic_relay.core.commands import NOTHING_DELIVERED, DueKey, Schedule
from delaytopic_relay.core.entries import Summary, summary

READER: Final = 6
"""The version of the code that reads records. It changes with each change of a verdict: of what is accepted, and of the
due time, id or target that follows from a record."""
MOST_GENERATIONS: Final = 8
"""The most generations of one partition, those that differ by the clock alone counted as one; a further edit waits
until the oldest is done."""
MOST_TEXT: Final = 1_200
"""Characters that all generations of a partition take in the metadata of its committed offset, of 4,096."""
LONGEST_ALLOWED: Final = 100
"""Characters of allowed topics in the text of rules. Of a longer list nothing is asked when a record is read: whether
its target is allowed is then asked when it is due alone."""
JUDGED_WHEN_DUE: Final = "?"
UNBOUNDED_MS: Final = 1 << 60
_SAME: Final = "="
"""Stands for the rules of the generation before, but for the clock."""

_due_ms = attrgetter("due_ms")


class Rules(NamedTuple):
    """The rules of one DelayTopic, as far as the verdict on a record follows from them.

    `target` is a mark of the target topic's name. `options` are those of the dialect, in its own words. `allowed` are
    globs of further targets; None if they are too many to be committed.

    `shift_ms` is the time by which a test had moved its clock ahead of the broker's: a record counts from its own
    timestamp plus that. It only grows, and is 0 on a cluster.
    """

    dialect: Dialect
    max_delay_ms: int
    target: str
    default_delay_ms: int | None = None
    delay_ms: int | None = None
    ids: Ids = Ids.BY_HEADER
    options: str = ""
    allowed: tuple[str, ...] | None = ()
    reader: int = READER
    shift_ms: int = 0

    @property
    def postpones(self) -> bool:
        """Return whether a record may put off another, which is then written into the source again."""
        return CAPABILITIES[self.dialect].postpones


def target_mark(topic: str) -> str:
    """Return the mark of a topic's name in rules: 32 bits in hexadecimal digits."""
    return sha256(topic.encode()).hexdigest()[:8]


def allowed_of(globs: Sequence[str]) -> tuple[str, ...] | None:
    """Return the globs as rules keep them; None if they are too long."""
    kept = tuple(dict.fromkeys(globs))
    return kept if len(",".join(kept)) <= LONGEST_ALLOWED else None


class Generation(NamedTuple):
    """Rules in force from source offset `since` on, up to where the next generation begins.

    `declared_ms` tells which of two relays has the later rules: the time at which they were declared, in epoch
    milliseconds; 0 where nobody says. No schedule that they gave has a greater key than `last`.
    """

    since: int
    declared_ms: int
    last: DueKey
    rules: Rules


class Declared(NamedTuple):
    """The rules that a relay is configured with, and when they were declared."""

    rules: Rules
    declared_ms: int = 0


class Succession(NamedTuple):
    """The generations that a new owner goes on with, the floor that follows, and why its own rules have to wait.

    `waits` is None if its own rules are in force for what comes, or are older than those that are.
    """

    kept: tuple[Generation, ...]
    floor: int
    waits: str | None = None


def succeed(
    kept: Sequence[Generation], floor: int, declared: Declared, position: int, cursor: DueKey, end: int
) -> Succession:
    """Begin a generation at the source's `end`, if the declared rules differ from those in force and are not older.

    There is one in force, and `position` and `cursor` are the committed ones. Of rules with another id space, and of a
    dialect that puts records off, nothing may wait when the next ones begin.
    """
    rules, declared_ms = declared
    last = kept[-1]
    if declared_ms and declared_ms < last.declared_ms:
        return Succession(tuple(kept), floor)
    rules = moved(rules, last.rules)
    declared_ms = max(declared_ms, last.declared_ms)
    if rules == last.rules:
        return Succession((*kept[:-1], last._replace(declared_ms=declared_ms)), floor)
    # Nothing was ever read by rules that begin where the source ends: others take their place.
    former = tuple(kept) if last.since < end else tuple(kept[:-1])
    begun = Generation(min(last.since, end) if len(former) < len(kept) else end, declared_ms, NOTHING_DELIVERED, rules)
    if all(may_wait_together(each.rules.dialect, each.rules.ids, rules.dialect, rules.ids) for each in former):
        longer = (*former, begun)
        if _edits(longer) < MOST_GENERATIONS and len(encode_generations(longer)) <= MOST_TEXT:
            return Succession(longer, floor)
        return Succession(tuple(kept), floor, _too_many(kept))
    if position >= end and all(each.last <= cursor for each in kept):
        return Succession((begun._replace(since=end),), end)
    return Succession(tuple(kept), floor, _another_space(last.rules, rules))


def moved(rules: Rules, former: Rules) -> Rules:
    """Return rules by which the clock does not go back behind what it showed by the former ones."""
    return rules._replace(shift_ms=max(rules.shift_ms, former.shift_ms))


def _same_but_for_the_clock(one: Rules, other: Rules) -> bool:
    return one._replace(shift_ms=other.shift_ms) == other


def _edits(generations: Sequence[Generation]) -> int:
    return sum(not _same_but_for_the_clock(one.rules, other.rules) for one, other in pairwise(generations))


def _too_many(kept: Sequence[Generation]) -> str:
    last_due = datetime.fromtimestamp(kept[0].last.due_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"records that wait were read by {len(kept)} versions of this DelayTopic's rules, as many as a relay keeps: "
        f"the latest edit takes effect when all that is due up to {last_due} is delivered"
    )


def _another_space(former: Rules, rules: Rules) -> str:
    return (
        f"the ids of dialect {rules.dialect} are others than those of {former.dialect}, by which records wait: the "
        "edit takes effect when nothing waits any more; let producers pause until then, or make another DelayTopic"
    )


class Generations:
    """The rules of one shard by source offset, and the floor."""

    def __init__(self, kept: Sequence[Generation], floor: int) -> None:
        self._kept = [*kept]
        self.floor = floor

    @property
    def kept(self) -> tuple[Generation, ...]:
        """The generations by which something may still wait, the oldest first; what to commit."""
        return tuple(self._kept)

    def max_delay_ms(self, position: int) -> int:
        """Return the longest delay that a record from this offset on may have."""
        in_force = [each for each, end in self._with_ends() if end is None or end > position]
        return max((each.rules.max_delay_ms for each in in_force), default=UNBOUNDED_MS)

    def _with_ends(self) -> Iterable[tuple[Generation, int | None]]:
        return zip_longest(self._kept, [each.since for each in self._kept[1:]])

    def gave(self, schedules: Sequence[Schedule], span: Summary | None = None) -> None:
        """Note the keys of schedules that were read, in the order of their offsets; `span` is their summary."""
        if not schedules:
            return
        first, last = schedules[0].offset, schedules[-1].offset
        for place, (each, end) in enumerate(self._with_ends()):
            if last < each.since or (end is not None and end <= first):
                continue
            whole = each.since <= first and (end is None or last < end)
            its = schedules if whole else [s for s in schedules if each.since <= s.offset < (end or last + 1)]
            if not its:
                continue
            # The greatest key that they have, or a little more: with the last offset it costs less.
            _, last_ms, last_offset = span if whole and span is not None else summary(its)
            if (last_ms, last_offset) > each.last:
                self._kept[place] = each._replace(last=DueKey(last_ms, last_offset))

    def passed(self, until_ms: int, position: int) -> DueKey:
        """Return a cursor that has passed the oldest generation, if nothing that is due up to `until_ms` waits.

        The record of the last key that it gave may have been refused after all, so that nothing is ever delivered
        there.
        """
        if len(self._kept) < 2 or position < self._kept[1].since:
            return NOTHING_DELIVERED
        last = self._kept[0].last
        return last if last.due_ms <= until_ms else NOTHING_DELIVERED

    def end_done(self, position: int, cursor: DueKey) -> None:
        """Forget generations that are done: from then on their end is the floor."""
        while len(self._kept) > 1 and position >= self._kept[1].since and self._kept[0].last <= cursor:
            self.floor = self._kept[1].since
            del self._kept[0]


# -- the text


def encode_rules(rules: Rules) -> str:
    """Return rules as a short text without a semicolon or a space."""
    allowed = JUDGED_WHEN_DUE if rules.allowed is None else ",".join(rules.allowed)
    numbers = (rules.max_delay_ms, rules.default_delay_ms, rules.delay_ms)
    texts = ["" if number is None else str(number) for number in numbers]
    reader = _shifted(str(rules.reader), rules)
    return ":".join([reader, rules.dialect, *texts, rules.ids, rules.target, rules.options, allowed])


def _shifted(text: str, rules: Rules) -> str:
    return f"{text}+{rules.shift_ms}" if rules.shift_ms else text


def decode_rules(text: str) -> Rules:
    """Read rules back. Raises `ValueError`."""
    read_by, dialect, most, default, delay, ids, target, options, allowed = text.split(":")
    reader, shift_ms = _split_shift(read_by)
    return Rules(
        Dialect(dialect),
        number_of(most, 0),
        target,
        number_of(default, 0) if default else None,
        number_of(delay, 0) if delay else None,
        Ids(ids),
        options,
        None if allowed == JUDGED_WHEN_DUE else tuple(allowed.split(",")) if allowed else (),
        number_of(reader, 0),
        shift_ms,
    )


def _split_shift(text: str) -> tuple[str, int]:
    rest, moved, shift = text.partition("+")
    return rest, number_of(shift, 1) if moved else 0


def mark_of(generation: Generation) -> str:
    """Return a short text that tells a generation from others: by its first offset and its rules."""
    return sha256(f"{generation.since}:{encode_rules(generation.rules)}".encode()).hexdigest()[:12]


def encode_generations(generations: Sequence[Generation]) -> str:
    """Return the text: numbers and rules of each, one after another."""
    texts: list[str] = []
    former: Rules | None = None
    for since, declared_ms, last, rules in generations:
        # A test may move its clock some thirty times while a record waits: the whole rules would not find room.
        same = former is not None and _same_but_for_the_clock(rules, former)
        text = _shifted(_SAME, rules) if same else encode_rules(rules)
        texts.append(f"{since}:{declared_ms}:{last.due_ms}:{last.offset}:{text}")
        former = rules
    return " ".join(texts)


def decode_generations(text: str) -> tuple[Generation, ...]:
    """Read generations back. Raises `ValueError`, also where one does not begin behind the one before."""
    found: list[Generation] = []
    for part in text.split(" ") if text else []:
        since, declared_ms, due_ms, offset, text = part.split(":", 4)
        last = DueKey(number_of(due_ms), number_of(offset))
        same, shift_ms = _split_shift(text) if text.startswith(_SAME) else ("", 0)
        rules = found[-1].rules._replace(shift_ms=shift_ms) if found and same == _SAME else decode_rules(text)
        found.append(Generation(number_of(since, 0), number_of(declared_ms, 0), last, rules))
    if any(former.since >= later.since for former, later in pairwise(found)):
        raise ValueError(f"the generations of rules in {text[:200]!r} are not in the order of their offsets")
    return tuple(found)
