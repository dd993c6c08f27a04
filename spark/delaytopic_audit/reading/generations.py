"""The rules by which relays read the source, by offset: what their group has committed, and what was known before.

Pure. Relays forget rules by which nothing waits any more. The audit keeps them for as long as Kafka has records of
their offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, NamedTuple

from delaytopic_audit.model.manifest import Range, Remarked, Role, RulesFrom
from delaytopic_relay.core import Dialect, Rules, decode_progress, decode_rules, encode_rules
from delaytopic_relay.dialects import dialect_by
from delaytopic_relay.errors import ProgressError, UnknownRules

_LONGEST_SHOWN: Final = 100
"""Characters of a text in a sentence."""
_UNKNOWN: Final = "relays read them by rules that this version of the audit does not know"
_FORGOTTEN: Final = "relays have forgotten the rules that they read them by, so they were read by the oldest known ones"
_MISREAD: Final = "relays read them by other rules than the audit did, as it knows by now; --restart judges them again"


class CommittedOffset(NamedTuple):
    """An offset that the relays' group has committed, with the text beside it."""

    offset: int
    metadata: str


@dataclass(frozen=True)
class Learned:
    """The rules that a run has learned, by partition and in the order of their offsets.

    `configured` are the DelayTopic's own, for partitions of which nothing is known. `remarks` say what could not be
    learned, one sentence each.
    """

    configured: str
    found: Mapping[int, Sequence[RulesFrom]] = field(default_factory=dict)
    remarks: Sequence[str] = ()


def learned_from(configured: Rules, committed: Mapping[int, CommittedOffset]) -> Learned:
    """Return what the offsets that a group has committed say of rules."""
    found: dict[int, list[RulesFrom]] = {}
    unread: dict[int, ProgressError] = {}
    for partition, (offset, metadata) in sorted(committed.items()):
        try:
            generations = decode_progress(offset, metadata).generations
        except ProgressError as error:
            unread[partition] = error
            continue
        if generations:
            rules = [(each.since, encode_rules(each.rules)) for each in generations]
            found[partition] = [RulesFrom(partition=partition, offset=since, rules=text) for since, text in rules]
    first = next(iter(unread.values()), None)
    remarks = [] if first is None else [_not_learned(f"of partitions {', '.join(map(str, unread))}", str(first))]
    return Learned(encode_rules(configured), found, remarks)


def nothing_learned(configured: Rules, group_id: str, reason: str) -> Learned:
    """Return what a run knows that could not ask the group."""
    right = f"the group {group_id} cannot be read ({reason}), for which the audit's Kafka user needs Describe on it"
    return Learned(encode_rules(configured), remarks=[_not_learned("", right)])


def _not_learned(of: str, reason: str) -> str:
    return (
        f"The rules by which relays read source records{of and f' {of}'} could not be learned: {reason}. Records were"
        " judged by the rules that are known, or by the DelayTopic as it is: verdicts on those from before an edit may"
        " be wrong."
    )


def merged(known: Sequence[RulesFrom], found: Sequence[RulesFrom], low: int) -> list[RulesFrom]:
    """Return the rules of one partition that are in force from offset `low` on.

    Relays forget the oldest alone, so that all is `found` from the first of it on. What was only assumed gives way.
    """
    if not found:
        kept = [each for each in known if not each.assumed]
    else:
        kept = [*(each for each in known if not each.assumed and each.offset < found[0].offset), *found]
    return [each for each, end in _with_ends(kept) if end is None or end > low]


def by_partition(generations: Iterable[RulesFrom]) -> dict[int, list[RulesFrom]]:
    """Return the rules of each partition, in their order."""
    of: defaultdict[int, list[RulesFrom]] = defaultdict(list)
    for each in generations:
        of[each.partition].append(each)
    return dict(of)


def pieces(generations: Sequence[RulesFrom], start: int, end: int) -> Iterator[tuple[int, int, RulesFrom]]:
    """Yield the parts of some offsets of a partition with their rules; what is older than all, by the oldest."""
    for place, (each, until) in enumerate(_with_ends(generations)):
        first = start if place == 0 else max(start, each.offset)
        last = end if until is None else min(end, until)
        if first < last:
            yield first, last, each


def in_force(generations: Iterable[RulesFrom], ranges: Iterable[Range]) -> list[RulesFrom]:
    """Return the rules by which source records of these ranges are read."""
    found = {(each.partition, each.offset): each for _, _, _, each in _read_by(generations, ranges)}
    return [found[key] for key in sorted(found)]


def read_rules(text: str, target: str) -> tuple[Rules, Dialect] | None:
    """Return rules with the dialect that reads by them; None where this version knows no such rules."""
    try:
        rules = decode_rules(text)
        return rules, dialect_by(rules, target)
    except (UnknownRules, ValueError):
        return None


def unjudged(
    generations: Iterable[RulesFrom], ranges: Iterable[Range], target: str, before: Iterable[Remarked]
) -> list[Remarked]:
    """Return the source offsets that cannot be judged: of these ranges those of unknown rules, and what was so before.

    `target` is the target topic.
    """
    found = [
        _remarked(piece, start, end, f"{_UNKNOWN} ({each.rules[:_LONGEST_SHOWN]})")
        for piece, start, end, each in _read_by(generations, ranges)
        if read_rules(each.rules, target) is None
    ]
    return _joined([*before, *found])


def doubtful(
    generations: Sequence[RulesFrom],
    ranges: Iterable[Range],
    formerly: Sequence[RulesFrom],
    read: Iterable[Range],
    before: Iterable[Remarked],
) -> list[Remarked]:
    """Return the source offsets whose rules are in doubt: of these ranges, of what was `read`, and what was so before.

    `formerly` are the rules by which it was read last.
    """
    forgotten = [
        _remarked(piece, start, min(end, each.offset), _FORGOTTEN)
        for piece, start, end, each in _read_by(generations, ranges)
        if start < each.offset
    ]
    misread = [
        _remarked(piece, start, end, _MISREAD)
        for whole, first, last, was in _read_by(formerly, read)
        for piece, start, end, each in _read_by(generations, [_remarked(whole, first, last, "")])
        if each.rules != was.rules and not each.assumed
    ]
    return _joined([*before, *forgotten, *misread])


def _remarked(piece: Range, start: int, end: int, reason: str) -> Remarked:
    return Remarked(topic=piece.topic, role=piece.role, partition=piece.partition, start=start, end=end, reason=reason)


def _read_by(generations: Iterable[RulesFrom], ranges: Iterable[Range]) -> Iterator[tuple[Range, int, int, RulesFrom]]:
    """Yield the parts of source ranges, each with its bounds and its rules."""
    of = by_partition(generations)
    for piece in ranges:
        if piece.role is Role.SOURCE:
            for start, end, each in pieces(of.get(piece.partition, []), piece.start, piece.end):
                yield piece, start, end, each


def _joined(ranges: Iterable[Remarked]) -> list[Remarked]:
    """Return ranges in their order, with one for those of one reason that meet."""
    found: list[Remarked] = []
    for piece in sorted(ranges, key=lambda each: (each.partition, each.reason, each.start)):
        last = found[-1] if found else piece
        if found and (last.partition, last.reason) == (piece.partition, piece.reason) and piece.start <= last.end:
            found[-1] = last.model_copy(update={"end": max(last.end, piece.end)})
        else:
            found.append(piece)
    return found


def _with_ends(generations: Sequence[RulesFrom]) -> Iterable[tuple[RulesFrom, int | None]]:
    return zip_longest(generations, [each.offset for each in generations[1:]])
