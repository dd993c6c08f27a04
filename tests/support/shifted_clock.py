"""`python -m tests.support.shifted_clock FILE ...`: a relay whose wall clock is as many seconds ahead as a file says.

Only what Python reads is shifted. libfaketime, which shifts it for the C library too, has librdkafka wait for ever.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path


class ShiftedClock:
    """The clock of relays that are started by `module`; it is wrong by as much as `set_wrong` said last."""

    def __init__(self, file: Path) -> None:
        """The file tells the processes; the clock is right at first."""
        self._file = file
        self.set_wrong(0)

    def set_wrong(self, ahead_s: int) -> None:
        """Let the clock be ahead by so much from now on."""
        written = self._file.with_suffix(".new")
        written.write_text(str(ahead_s), encoding="ascii")
        written.replace(self._file)

    @property
    def module(self) -> list[str]:
        """The module that starts a relay, in place of the relay's own, and its first arguments."""
        return ["tests.support.shifted_clock", str(self._file)]


def main() -> None:
    """Run a relay."""
    file, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    right_ns = time.time_ns
    time.time_ns = lambda: right_ns() + int(file.read_text(encoding="ascii")) * 1_000_000_000
    runpy.run_module("delaytopic_relay", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
