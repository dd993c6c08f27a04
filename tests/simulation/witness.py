"""The journal of a simulated relay: counts which paths are taken, and what shards were recovered with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from delaytopic_api.records import DeadLetterReason
from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import Leaving, Reject, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Plan
from delaytopic_relay.errors import CorruptState, RelayError, StateInDoubt, Unavailable


class Witness:
    """Implements `LoopEvents`."""

    def __init__(self, counts: Counter[str], recovered: dict[int, Progress]) -> None:
        self._counts = counts
        self._recovered = recovered

    def commands(self, leaving: Leaving) -> None:
        if leaving.superseded:
            self._counts["path: superseded"] += leaving.superseded
        if leaving.cancelled:
            self._counts["path: cancelled"] += leaving.cancelled
        for rewritten in leaving.rewritten:
            way = "went on" if rewritten.goes_on else "withdrawn on its way" if rewritten.due_ms is None else "put off"
            self._counts[f"path: {way}"] += 1
        if leaving.too_late:
            self._counts["path: cancelled too late"] += leaving.too_late

    def sent(
        self, schedules: Sequence[Schedule], rejects: Sequence[Reject], withheld: Sequence[Reject], sent_ms: int
    ) -> None:
        self._counts["sent"] += len(schedules)
        if rejects:
            self._counts["path: dead letter"] += len(rejects)
        of_targets = sum(reject.reason is DeadLetterReason.TARGET_UNAVAILABLE for reject in rejects)
        self._counts["path: dead letter of a target"] += of_targets

    def recurred(self, left: Sequence[Schedule], missed: int, sent_ms: int) -> None:
        self._counts["path: recurred"] += len(left)
        self._counts["path: slot missed"] += missed

    def ended(self, outcomes: Mapping[Ending, int]) -> None:
        for ending, count in outcomes.items():
            self._counts[f"path: {ending}"] += count

    def committed(self, duration_ms: int) -> None:
        self._counts["commits"] += 1

    def put(self, duration_ms: int) -> None:
        self._counts["puts"] += 1

    def reset(self, lost: StateInDoubt) -> None:
        self._counts[f"path: started over, {lost.cause}"] += 1

    def recovered(self, partition: int, cause: str, plan: Plan) -> None:
        self._recovered[partition] = plan.progress
        self._counts[f"path: recovered, {cause}"] += 1
        if plan.replay > 0:
            self._counts["path: replayed"] += 1
        generations, floor = plan.progress.generations, plan.progress.floor
        self._counts["path: former rules in force for what waits"] += len(generations) > 1
        self._counts["path: former rules done"] += floor > 0
        self._counts["path: an edit waits"] += plan.rules_wait is not None
        if plan.missing_offsets:
            self._counts["path: gone from the source"] += 1

    def fenced(self, owner: str) -> None:
        self._counts["path: fenced the last owner"] += 1

    def foreign(self, partition: int, where: str) -> None:
        self._counts["path: skipped what somebody else wrote"] += 1

    def stuck(self, partition: int, error: RelayError) -> None:
        kind = "corrupt" if isinstance(error, CorruptState) else type(error).__name__
        self._counts[f"path: recovery put off, {kind}"] += 1

    def unavailable(self, error: RelayError) -> None:
        kind = type(error).__name__ if isinstance(error, Unavailable) else "moved"
        self._counts[f"path: tried again, {kind}"] += 1
