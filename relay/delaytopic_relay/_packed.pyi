"""The optional extension in `relay/packed`; `core.packed` is what the rest of the relay knows of it."""

from collections.abc import Callable, Sequence

from delaytopic_api.records import Headers
from delaytopic_relay.core.commands import Command, Schedule, SourceMessage

class Packed(Schedule):
    """Not a subclass in truth, but an object with the same fields, which cannot be set."""

    @property
    def length(self) -> int: ...

class Sender:
    """Sends through the Kafka client's producer that was made last in this thread, with this file as a plugin."""

    def produce(
        self,
        topic: str,
        partition: int,
        schedules: Sequence[Schedule],
        place: int,
        receipt: str,
        between: bytes,
        after: bytes,
        /,
    ) -> int: ...
    def failures(self, /) -> list[tuple[int, str, int, int]]: ...

def pack(schedules: Sequence[Schedule], /) -> bytes | None: ...
def unpack(data: bytes | memoryview, /) -> list[Schedule] | None: ...
def summary(schedules: Sequence[object], /) -> tuple[int, int, int, int, int] | None: ...
def by_span(schedules: Sequence[Schedule], width_ms: int, /) -> list[tuple[int, list[Schedule], int, int]] | None: ...
def ordered(schedules: Sequence[Schedule], /) -> list[Schedule] | None: ...
def read(
    messages: Sequence[SourceMessage],
    careful: Callable[[SourceMessage], Command],
    implied_delay_ms: int,
    last_timestamp_ms: int,
    max_delay_ms: int,
    note: Callable[[Headers], None] | None,
    /,
) -> list[Command]: ...
