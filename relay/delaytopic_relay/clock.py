"""Edge: the machine's clock, and one that a test of an application moves ahead of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from delaytopic_relay.core.commands import Dialect
from delaytopic_relay.core.rules import Rules
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.engine.reading import DialectOf
from delaytopic_relay.errors import ConfigurationError, UnknownRules


class SystemClock:
    """Implements `Clock`."""

    shift_ms = 0
    asked_ms = 0
    pages: Mapping[str, Callable[[], str]] = MappingProxyType({})
    """The pages of a relay that tell of its clock, as JSON."""

    def now_ms(self) -> int:
        """Wall clock, epoch milliseconds, rounded down: a record is never early by it."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return the time of a clock that is never set, for intervals."""
        return time.monotonic_ns() // 1_000_000

    def sleep(self, duration_ms: int) -> None:
        """Wait."""
        time.sleep(duration_ms / 1000)

    def move(self, shift_ms: int) -> None:
        """Change nothing: rules of a clock that was moved are refused where nobody moves one."""

    def turn(self, loop: Loop) -> None:
        """Take note of nothing."""

    def checked(self, dialect_of: DialectOf) -> DialectOf:
        """Return the same, which raises `UnknownRules` for what was read by a clock that was moved."""

        def by_a_clock_that_nobody_moves(rules: Rules) -> Dialect:
            if rules.shift_ms:
                raise UnknownRules(
                    "records of this group were read by a clock that a test had moved ahead, and this relay's clock is "
                    "the machine's: let `delaytopic local --clock manual` deliver them, or give the DelayTopic another "
                    "group or source, as a test's topics are for tests alone"
                )
            return dialect_of(rules)

        return by_a_clock_that_nobody_moves


class ManualClock(SystemClock):
    """A clock that is ahead of the machine's by what a file says, as soon as that is committed."""

    def __init__(self, file: Path) -> None:
        """`file` has the milliseconds in digits, and grows by replacement. Raises `ConfigurationError`."""
        self._file = file
        self._seen: tuple[int, int] | None = None
        self.shift_ms = self.asked_ms = 0
        self.pages = {"/clock": lambda: self._page}
        self._page = "{}"
        self._look()

    def turn(self, loop: Loop) -> None:
        """Look what is asked for, and tell what is committed of each partition at work, or why it is not; and whether
        all that was due by `nowMs` has left, of what lies below `positions`.
        """
        self._look()
        waits = loop.partitions.having(lambda each: each.rules_wait)
        positions = {partition: shard.position for partition, shard in loop.shards.items()}
        self._page = json.dumps(
            {
                "shownMs": loop.shown_ms,
                "waits": waits,
                "nowMs": self.now_ms(),
                "atRest": loop.at_rest,
                "positions": positions,
            }
        )

    def checked(self, dialect_of: DialectOf) -> DialectOf:
        """Return the same."""
        return dialect_of

    def _look(self) -> None:
        """Read the file if it was replaced. Raises `ConfigurationError` for one that says no number."""
        try:
            stat = self._file.stat()
            if (stat.st_ino, stat.st_mtime_ns) != self._seen:
                self.asked_ms = max(self.asked_ms, int(self._file.read_text(encoding="ascii")))
                self._seen = (stat.st_ino, stat.st_mtime_ns)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"--manual-clock: {self._file} must hold the milliseconds by which the clock is ahead: {error}"
            ) from error

    def now_ms(self) -> int:
        """See `SystemClock.now_ms`; with the shift."""
        return super().now_ms() + self.shift_ms

    def move(self, shift_ms: int) -> None:
        """See `Clock.move`."""
        self.shift_ms = max(self.shift_ms, shift_ms)
