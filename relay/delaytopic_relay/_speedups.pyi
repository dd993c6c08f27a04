"""The implementation in C, in `relay/speedups`; what `core._pyentries` has too is typed there."""

from collections.abc import Sequence

from delaytopic_relay.core._pyentries import Schedule

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
