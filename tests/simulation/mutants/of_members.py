"""Mutants of membership: of relays that start in place, and of members that were removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.mutants.breaking import HastySource, Mutant, Patch
from tests.simulation.world.group import Group, Member

from delaytopic_relay.core import membership
from delaytopic_relay.core.membership import Answer, Step, Unowned
from delaytopic_relay.engine.recovery import Takeover


def _steps(changes: dict[Answer, Step]) -> Sequence[Patch]:
    def next_step(heard: Iterable[Answer]) -> Step:
        return max((changes.get(each, membership._STEPS[each]) for each in heard), default=Step.GO_ON)

    return [(membership, "next_step", next_step)]


def stays_when_removed() -> Sequence[Patch]:
    return _steps({Answer.UNKNOWN_MEMBER: Step.GO_ON, Answer.FENCED: Step.GO_ON})


def takes_its_name_back() -> Sequence[Patch]:
    return _steps({Answer.FENCED: Step.JOIN_AGAIN})


def takes_its_former_life_for_itself() -> Sequence[Patch]:
    original_replace, original_init, original_fence = Group._replace, Takeover.__init__, Takeover._fence_last_owners

    class Trusting:
        def __init__(self, source: Any) -> None:
            self._source = source

        def __getattr__(self, name: str) -> Any:
            trusts = name == "committed" and _is_in_place(self._source)
            return getattr(self._source, "last_committed" if trusts else name)

    def replace(self: Group, former: Member, member: Member, now_ms: int) -> None:
        original_replace(self, former, member, now_ms)
        member.is_in_place = True  # type: ignore[attr-defined]

    def init(self: Takeover, source: Any, *arguments: Any, **keywords: Any) -> None:
        trusting: Any = Trusting(source)
        original_init(self, trusting, *arguments, **keywords)

    def fence(self: Takeover, last: Any, topic: Any) -> None:
        if not _is_in_place(self._source):
            original_fence(self, last, topic)

    return [(Group, "_replace", replace), (Takeover, "__init__", init), (Takeover, "_fence_last_owners", fence)]


def _is_in_place(source: Any) -> bool:
    return getattr(source.member, "is_in_place", False)


def leaves_partitions_unowned() -> Sequence[Patch]:
    return [(Unowned, "lasts", lambda self, unowned, now_ms: False)]


def releases_without_waiting() -> Sequence[Patch]:
    original = Takeover.release

    def release(self: Takeover, partitions: Iterable[int]) -> None:
        source: Any = self._source
        hasty: Any = HastySource(source)
        self._source = hasty
        try:
            original(self, partitions)
        finally:
            self._source = source

    return [(Takeover, "release", release)]


def _of_members(name: str, sentence: str, patches: Callable[[], Sequence[Patch]], backend: str = "Members") -> Mutant:
    return Mutant(name, sentence, patches, backend)


MUTANTS = (
    _of_members(
        "removed-stays", "goes on as it was when the group has removed it, and does not join", stays_when_removed
    ),
    _of_members("name-taken-back", "joins again under its name when another has taken it", takes_its_name_back),
    _of_members(
        "former-life",
        "starts in place and neither fences its former life nor waits for what that one left in doubt",
        takes_its_former_life_for_itself,
    ),
    _of_members(
        "released-in-doubt",
        "hands over after an aborted tick, and does not wait for what is in doubt of the one before",
        releases_without_waiting,
        "HandOvers",
    ),
    _of_members(
        "unowned-left",
        "does not look whether what it was letting go when it died has an owner",
        leaves_partitions_unowned,
        "MembersBuckets",
    ),
)
