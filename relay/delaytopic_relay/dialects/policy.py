"""The policy of a DelayTopic for its producers; decided by whoever wrote the YAML, not by the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from delaytopic_api.values import topic_matcher


class TopicGlobs:
    """The topics that `deliver-to` may name besides the target: globs, compiled once, and kept to be told."""

    def __init__(self, globs: Sequence[str]) -> None:
        """`globs` as in `target.allowed`, like `shop.*`; none allows nothing."""
        self.globs = tuple(globs)
        self._matches = topic_matcher(self.globs)

    def __call__(self, topic: str) -> bool:
        """Return whether one of the globs covers the whole name."""
        return self._matches(topic)


class NativePolicy(NamedTuple):
    """One DelayTopic's rules for the native dialect.

    `delay_ms` is set for a fixed delay, which then is every record's; `default_delay_ms` is the delay of a
    record that names no time, None for at once.
    """

    target_topic: str
    target_allowed: TopicGlobs
    max_delay_ms: int
    default_delay_ms: int | None = None
    delay_ms: int | None = None
    ids_enabled: bool = True

    @property
    def implied_delay_ms(self) -> int | None:
        """The delay of a record that names none; None for at once."""
        return self.default_delay_ms if self.delay_ms is None else self.delay_ms
