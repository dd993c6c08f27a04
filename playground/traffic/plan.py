"""The plan of a sender, record by record: it follows from a few numbers, so that one line states a run. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, Self


@dataclass(frozen=True)
class Plan:
    """A number of records at a rate (0: as fast as may be), each due after a delay between two bounds.

    `run` is in each record, so that runs on one topic are told apart. With `from_start`, delays count from the start of
    the run rather than from each sending: equal bounds make a burst. Of `cancel_every` records (0: none) one is
    withdrawn again, `cancel_after_ms` after it was sent.
    """

    run: str
    records: int
    per_second: int = 0
    delays_ms: tuple[int, int] = (1_000, 5_000)
    from_start: bool = False
    cancel_every: int = 0
    cancel_after_ms: int = 1_000
    keys: int = 997
    seed: int = 1

    def encode(self) -> str:
        """Return it as one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Self:
        """The inverse of `encode`; raises TypeError for a field that there is not."""
        fields: dict[str, Any] = json.loads(text)
        low_ms, high_ms = fields.pop("delays_ms", cls.delays_ms)
        return cls(**fields, delays_ms=(low_ms, high_ms))


class Step(NamedTuple):
    """One record to send, `at_ms` after the start. `delay_ms` is None for a cancel, `id` for what nobody withdraws."""

    at_ms: int
    number: int
    key: bytes
    delay_ms: int | None
    id: bytes | None


def steps(plan: Plan) -> Iterator[Step]:
    """All records of a run, in the order in which they are sent."""
    rng = random.Random(plan.seed)
    cancels: list[Step] = []
    for number in range(plan.records):
        at_ms = number * 1_000 // plan.per_second if plan.per_second else 0
        while cancels and cancels[0].at_ms <= at_ms:
            yield heappop(cancels)
        key = b"key-%d" % (number % plan.keys)
        is_withdrawn = plan.cancel_every > 0 and number % plan.cancel_every == plan.cancel_every - 1
        id = f"{plan.run}-{number}".encode() if is_withdrawn else None
        yield Step(at_ms, number, key, rng.randint(*plan.delays_ms), id)
        if is_withdrawn:
            heappush(cancels, Step(at_ms + plan.cancel_after_ms, number, key, None, id))
    while cancels:
        yield heappop(cancels)
