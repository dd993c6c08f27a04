"""Facts on a DelayTopic that a sender has to know, and objections to what it would get wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delaytopic_api.records import resembled_header
from delaytopic_api.values import Duration, covers
from delaytopic_gateway.client.new_records import Addressing, Timing


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A DelayTopic, as far as senders have to know it."""

    name: str
    """`namespace/name`."""
    source: str
    target: str
    dead_letter: str
    allowed: tuple[str, ...] = ()
    """Globs of the topics that `deliver-to` may name beside the target."""
    fixed_delay_ms: int | None = None
    max_delay_ms: int | None = None
    takes_ids: bool = True
    dialect: str = "Native"

    def is_meant_by(self, name: str) -> bool:
        """Tell whether a name on a command line is one of its topics, or its own with or without the namespace."""
        return name in (self.source, self.target, self.dead_letter, self.name, self.name.partition("/")[2])


def objection(
    topic: str, known: Sequence[KnownTopic], timing: Timing, addressing: Addressing, *, now_ms: int
) -> str | None:
    """Return the reason for which records must not be sent so, in one sentence; None where none is known."""
    read_by = next((each for each in known if each.source == topic), None)
    if read_by is not None:
        return next(_objections(read_by, timing, addressing, now_ms), None)
    for each in known:
        if topic in (each.target, each.dead_letter):
            what = "target" if topic == each.target else "dead-letter"
            return (
                f"{topic} is the {what} topic of {each.name}: no relay delays what is sent there; "
                f"send to its source topic {each.source}"
            )
    return None


def _objections(known: KnownTopic, timing: Timing, addressing: Addressing, now_ms: int) -> Iterator[str]:
    timed = timing.after is not None or timing.at_ms is not None or bool(timing.recurrence)
    if known.dialect != "Native" and (timed or addressing.schedule_id or addressing.to):
        yield (
            f"{known.name} reads records in the dialect {known.dialect}: leave --after, --at, --id and --to out, and "
            "write key, value and headers as that dialect does"
        )
    if known.fixed_delay_ms is not None and timed:
        delay = Duration.of_ms(known.fixed_delay_ms)
        yield f"{known.name} delays every record by {delay} (spec.schedule.fixedDelay): leave --after and --at out"
    if addressing.schedule_id is not None and not known.takes_ids:
        yield f"{known.name} takes no ids: leave --id out"
    if addressing.to not in (None, known.target) and not covers(known.allowed, addressing.to or ""):
        listed = ", ".join(known.allowed) or "nothing"
        yield f"--to: {known.name} does not deliver to {addressing.to}; spec.target.allowedTopics has {listed}"
    delay_ms = _longest_delay_ms(timing, now_ms)
    if known.max_delay_ms is not None and delay_ms > known.max_delay_ms:
        longest = Duration.of_ms(known.max_delay_ms)
        yield f"{known.name} takes what is due within {longest} (spec.schedule.maxDelay), and this is later"


def _longest_delay_ms(timing: Timing, now_ms: int) -> int:
    if timing.after is not None:
        return timing.after.ms
    return timing.at_ms + (timing.spread_ms or 0) - now_ms if timing.at_ms is not None else 0


def warnings(topic: str, known: Sequence[KnownTopic], addressing: Addressing) -> Iterator[str]:
    """Yield what a sender should hear, and may have meant. `known` are the DelayTopics of the Kafka, or none."""
    if known and all(each.source != topic for each in known):
        yield f"{topic} is the source topic of no DelayTopic of the running `delaytopic local`: nothing is delivered"
    for name, _ in addressing.headers:
        meant = resembled_header(name)
        if meant is not None:
            yield f'the header "{name}" is passed on like any other: did you mean {meant}?'
