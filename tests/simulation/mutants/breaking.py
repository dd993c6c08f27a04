"""Ways to break the relay: a patch of a production function, or something between the loop and its clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.outbound import Departing, Outgoing
from delaytopic_relay.engine.loop import Loop, Parts
from delaytopic_relay.ports import GroupMetadata, Source, Target

Patch = tuple[Any, str, Any]
"""The owner of an attribute, its name, and what stands in its place."""


class Mutant(NamedTuple):
    """One deliberate breakage."""

    name: str
    sentence: str
    """The fault of the mutant."""
    patches: Callable[[], Sequence[Patch]]
    backend: str = "RedisZset"
    """The family of histories that is to catch it."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The relay is broken meanwhile."""
        with ExitStack() as stack:
            for owner, attribute, replacement in self.patches():
                stack.enter_context(mock.patch.object(owner, attribute, replacement))
            yield


def with_target(make: Callable[[Target, Source], Target]) -> Sequence[Patch]:
    """Every loop works with another target than it is given."""
    original = Loop.__init__

    def init(self: Loop, parts: Parts) -> None:
        original(self, parts._replace(target=make(parts.target, parts.source)))

    return [(Loop, "__init__", init)]


class BrokenTarget:
    """Passes everything on to the real target; mutants override what they break."""

    def __init__(self, target: Target, source: Source) -> None:
        self.target = target
        self.source = source

    @property
    def owner(self) -> str:
        return self.target.owner

    def begin(self) -> None:
        self.target.begin()

    @property
    def packs(self) -> bool:
        return False

    def send(self, records: Sequence[Departing]) -> None:
        self.target.send(records)

    def store(self, records: Sequence[Outgoing]) -> None:
        self.target.store(records)

    def flush(self) -> Any:
        return self.target.flush()

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        self.target.commit(progress, group)

    def abort(self) -> None:
        self.target.abort()

    def fence(self, owner: str) -> None:
        self.target.fence(owner)

    def replace(self) -> None:
        self.target.replace()

    def close(self) -> None:
        self.target.close()
