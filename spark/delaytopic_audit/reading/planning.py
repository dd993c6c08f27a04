"""The offsets that a run reads, decided before it reads any; the reasons against a run; shares for tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from delaytopic_api.relay import Ending
from delaytopic_audit.errors import CannotJudge
from delaytopic_audit.model.manifest import (
    Asked,
    FirstOffset,
    Plan,
    PlannedTopic,
    Range,
    Remarked,
    Role,
    RulesFrom,
    State,
)
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.reading.generations import Learned, by_partition, doubtful, merged, unjudged

BROKERS_CLOCK = "LogAppendTime"
SMALLEST_PIECE = 20_000
ANEW = "begin the audit anew with --restart"


class Offsets(NamedTuple):
    """The offsets of one partition: the first one that is still there, where reading begins at first, and the last
    stable offset, up to which transactions are decided.
    """

    low: int
    begin: int
    end: int


@dataclass(frozen=True)
class TopicState:
    """A topic as Kafka describes it."""

    topic: str
    topic_id: str
    partitions: Mapping[int, Offsets]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """The DelayTopic to audit."""

    delay_topic: str
    source: str
    target: str
    dead_letter: str
    rules: Rules
    now_ms: int
    trusts_any_clock: bool = False
    restarts: bool = False
    number: int = 1
    """The number of a DelayTopic whose audit begins anew."""
    outcomes: str | None = None
    """The topic of outcomes; None without one."""
    told: Sequence[Ending] = ()
    """The endings that it has to tell."""

    def role_of(self, topic: str) -> Role:
        """Return the part that a topic plays for the DelayTopic."""
        of_others = {self.source: Role.SOURCE, self.dead_letter: Role.DEAD_LETTER, self.outcomes: Role.OUTCOMES}
        return of_others.get(topic, Role.TARGET)


def make_plan(
    request: Request, states: Mapping[str, TopicState], last: State | None, learned: Learned | None = None
) -> Plan:
    """Return the plan of the next run; raises CannotJudge with every reason there is.

    `last` is what the last run has left, after which this one goes on. Only the three topics of the DelayTopic, and the
    targets that records have asked for, have to be fit to be judged, and the topic of outcomes if it is there. Without
    anything `learned` of their rules, source
    records are read by the DelayTopic as it is.
    """
    before = None if request.restarts else last
    needed = [request.source, request.target, request.dead_letter, *(before.named if before is not None else [])]
    outcomes = request.outcomes if request.outcomes in states else None
    needed += [outcomes] if outcomes is not None else []
    reasons = [reason for topic in dict.fromkeys(needed) for reason in _reasons(request, topic, states, before)]
    if reasons:
        raise CannotJudge(reasons)
    ranges = [piece for state in states.values() for piece in _ranges(request, state, before)]
    scope = _scope(request.source, ranges, before)
    source = states[request.source]
    generations = [] if learned is None else list(_generations(learned, source, last))
    return Plan(
        delay_topic=request.delay_topic,
        number=before.plan.number if before is not None else request.number,
        sequence=last.plan.sequence + 1 if last is not None else 1,
        epoch=(last.plan.epoch if last is not None else 0) + (1 if before is None else 0),
        planned_at_ms=request.now_ms,
        source=request.source,
        target=request.target,
        dead_letter=request.dead_letter,
        outcomes=outcomes,
        told=list(request.told) if outcomes is not None else [],
        trusts_any_clock=request.trusts_any_clock,
        rules=request.rules,
        topics=[_planned(request, state) for state in states.values()],
        ranges=ranges,
        scope=scope,
        generations=generations,
        unjudged=unjudged(generations, ranges, request.target, before.plan.unjudged if before is not None else []),
        doubtful=_doubtful(generations, source, ranges, scope, before),
        remarks=[*_unread_outcomes(request, states), *(learned.remarks if learned is not None else ())],
    )


def _unread_outcomes(request: Request, states: Mapping[str, TopicState]) -> Iterator[str]:
    if request.outcomes is not None and request.outcomes not in states:
        yield f"The topic of outcomes {request.outcomes} does not exist: what it has to tell is not judged."


def _planned(request: Request, state: TopicState) -> PlannedTopic:
    role = request.role_of(state.topic)
    return PlannedTopic(topic=state.topic, role=role, topic_id=state.topic_id, partitions=len(state.partitions))


def _ranges(request: Request, state: TopicState, last: State | None) -> Iterator[Range]:
    """Yield ranges from the last run's end on; in the first run from its beginning, of added partitions all.

    A topic of outcomes that earlier runs did not read is read from now on: part of it they may have read before that.
    """
    positions, role = _positions(last) if _is_known(state, last) else {}, request.role_of(state.topic)
    from_now_on = role is Role.OUTCOMES and last is not None and not _is_known(state, last)
    for partition, offsets in sorted(state.partitions.items()):
        first = offsets.end if from_now_on else offsets.begin if last is None else offsets.low
        start = positions.get((state.topic, partition), first)
        yield Range(topic=state.topic, role=role, partition=partition, start=start, end=offsets.end)


def _is_known(state: TopicState, last: State | None) -> bool:
    """Tell whether the last run planned this very topic, and not an earlier one of its name."""
    known = _planned_before(state.topic, last) if last is not None else None
    return known is not None and known.topic_id == state.topic_id


def _planned_before(topic: str, last: State) -> PlannedTopic | None:
    return next((planned for planned in last.plan.topics if planned.topic == topic), None)


def _generations(learned: Learned, source: TopicState, last: State | None) -> Iterator[RulesFrom]:
    """Yield the rules of each partition; what was known holds in an audit that begins anew, too."""
    known = by_partition(last.plan.generations) if last is not None and _is_known(source, last) else {}
    for partition, offsets in sorted(source.partitions.items()):
        found = merged(known.get(partition, []), learned.found.get(partition, []), offsets.low)
        yield from found or [RulesFrom(partition=partition, offset=0, rules=learned.configured, assumed=True)]


def _doubtful(
    generations: Sequence[RulesFrom],
    source: TopicState,
    ranges: Sequence[Range],
    scope: Sequence[FirstOffset],
    last: State | None,
) -> list[Remarked]:
    if last is None:
        return doubtful(generations, ranges, [], [], [])
    positions = _positions(last)
    read = []
    for first in scope:
        # Of what Kafka has forgotten the rules are forgotten, too.
        start = max(first.offset, source.partitions[first.partition].low)
        end = positions.get((source.topic, first.partition), start)
        read.append(Range(topic=source.topic, role=Role.SOURCE, partition=first.partition, start=start, end=end))
    remembered = [each for each in last.plan.doubtful if not any(_covers(piece, each) for piece in last.forgotten)]
    return doubtful(generations, ranges, last.plan.generations, read, remembered)


def _covers(whole: Asked, piece: Range) -> bool:
    return whole.partition == piece.partition and whole.start <= piece.start and piece.end <= whole.end


def _positions(last: State | None) -> dict[tuple[str, int], int]:
    return {} if last is None else {(r.topic, r.partition): r.end for r in last.plan.ranges}


def _scope(source: str, ranges: Sequence[Range], last: State | None) -> list[FirstOffset]:
    """Return the first offsets of the source that are judged; of partitions that were added since, all."""
    known = {} if last is None else {first.partition: first for first in last.plan.scope}
    of_source = (piece for piece in ranges if piece.topic == source)
    return [known.get(r.partition, FirstOffset(partition=r.partition, offset=r.start)) for r in of_source]


def _reasons(request: Request, topic: str, states: Mapping[str, TopicState], last: State | None) -> Iterator[str]:
    state, role = states.get(topic), request.role_of(topic)
    if state is None:
        # A target that only records name, and that never was, holds nothing: what was to go there became dead letters.
        if topic in (request.source, request.target, request.dead_letter):
            yield f"the {role} topic {topic} does not exist"
        elif last is not None and _planned_before(topic, last) is not None:
            yield f"the {role} topic {topic} was deleted since the last run: {ANEW}"
        return
    yield from _of_settings(state, role, request.trusts_any_clock)
    if last is not None:
        yield from _of_history(state, last)


def _of_settings(state: TopicState, role: Role, trusts_any_clock: bool) -> Iterator[str]:
    clock = state.settings.get("message.timestamp.type", BROKERS_CLOCK)
    if role not in (Role.DEAD_LETTER, Role.OUTCOMES) and clock != BROKERS_CLOCK and not trusts_any_clock:
        yield (
            f"the {role} topic {state.topic} has message.timestamp.type={clock}: its times are whatever producers"
            f" wrote, so nobody can say when a record arrived; set {BROKERS_CLOCK}, which holds for records from then"
            " on, or take those times as they are with --any-clock"
        )
    if "compact" in state.settings.get("cleanup.policy", ""):
        yield (
            f"the {role} topic {state.topic} is compacted: a record that compaction removed cannot be told from a lost"
            " one; set cleanup.policy=delete"
        )


def _of_history(state: TopicState, last: State) -> Iterator[str]:
    known = _planned_before(state.topic, last)
    if known is None:
        return
    if known.topic_id != state.topic_id or len(state.partitions) < known.partitions:
        yield f"the topic {state.topic} was deleted and made anew since the last run: {ANEW}"
        return
    for (topic, partition), position in sorted(_positions(last).items()):
        if topic != state.topic:
            continue
        offsets = state.partitions[partition]
        if offsets.low > position:
            yield (
                f"{topic} partition {partition}: the offsets {position} to {offsets.low - 1} expired before the audit"
                f" read them, so nobody can say what they held; run it more often than retention, and {ANEW}"
            )
        elif offsets.end < position:
            yield (
                f"{topic} partition {partition} ends at offset {offsets.end}, but was read up to {position} before:"
                f" Kafka lost records of it; {ANEW}"
            )


def shares(ranges: Sequence[Range], tasks: int) -> list[list[Range]]:
    """Return at most `tasks` lists of about as many offsets each; large ranges are split, small ones put together."""
    wanted = [piece for piece in ranges if piece.end > piece.start]
    total = sum(piece.end - piece.start for piece in wanted)
    if not total:
        return []
    largest = max(SMALLEST_PIECE, -(-total // tasks))
    pieces = sorted(
        (part for piece in wanted for part in _split(piece, largest)),
        key=lambda part: (part.start - part.end, part.topic, part.partition, part.start),
    )
    loads: list[list[Range]] = [[] for _ in range(min(tasks, len(pieces)))]
    for part in pieces:
        # A consumer reads a partition once: two parts of it are for different tasks, or the least laden one after all.
        free = [load for load in loads if all((part.topic, part.partition) != (r.topic, r.partition) for r in load)]
        if not free:
            loads.append([])
            free = [loads[-1]]
        min(free, key=_size).append(part)
    return loads


def _split(piece: Range, largest: int) -> list[Range]:
    count = -(-(piece.end - piece.start) // largest)
    bounds = [piece.start + (piece.end - piece.start) * place // count for place in range(count + 1)]
    return [piece.model_copy(update={"start": start, "end": end}) for start, end in pairwise(bounds)]


def _size(load: Sequence[Range]) -> int:
    return sum(part.end - part.start for part in load)
