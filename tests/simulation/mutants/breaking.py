"""Ways to break the relay: a patch of a production function, or something between the loop and its clients.

A mutant is caught by a promise that it breaks, never by an error of its own: what stands in a function's place has to
take every call that the function takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import Batch
from delaytopic_relay.delivery.outcomes import Places
from delaytopic_relay.engine.loop import Loop, Parts
from delaytopic_relay.ports import GroupMetadata, InVain, Source, Target, never

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
                check_fit(owner, attribute, replacement)
                stack.enter_context(mock.patch.object(owner, attribute, replacement))
            yield


def check_fit(owner: Any, attribute: str, replacement: Any) -> None:
    """Raise `TypeError` for a replacement that would raise where the original does not."""
    original, what = inspect.getattr_static(owner, attribute), f"{owner.__name__}.{attribute}"
    if isinstance(original, property) or not callable(original):
        if type(replacement) is not type(original):
            raise TypeError(f"{what} is a {type(original).__name__}, and its replacement {replacement!r} is not")
        return
    signature = inspect.signature(replacement)
    for by_place, by_name in _calls(inspect.signature(original), is_method=inspect.isclass(owner)):
        try:
            signature.bind(*by_place, **dict.fromkeys(by_name))
        except TypeError as error:
            call = ", ".join([*by_place, *(f"{name}=..." for name in by_name)])
            raise TypeError(f"{what} may be called with ({call}), and its replacement may not: {error}") from error


def _calls(signature: inspect.Signature, *, is_method: bool) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the arguments that a function takes by place and by name, with and without those that may be left out.

    A method's first is always given by place.
    """
    parameters = [p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for given in (parameters, [p for p in parameters if p.default is p.empty]):
        names = [p.name for p in given]
        last = sum(p.kind is not p.KEYWORD_ONLY for p in given)
        for placed in range(int(is_method), last + 1):
            yield names[:placed], names[placed:]


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

    def send(self, records: Sequence[Record | Batch]) -> None:
        self.target.send(records)

    def take_places(self) -> Places:
        return self.target.take_places()

    def compress(self) -> None:
        self.target.compress()

    def store(self, records: Sequence[Record]) -> None:
        self.target.store(records)

    def flush(self, in_vain: InVain = never) -> Any:
        return self.target.flush(in_vain)

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


class HastySource:
    """Passes everything on to the real source, but does not wait for what is in doubt."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, "last_committed" if name == "committed" else name)
