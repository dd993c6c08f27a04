"""Edge: the flag that a signal to stop sets."""

from __future__ import annotations

import signal
from types import FrameType


class StopFlag:
    """Set by the first SIGTERM or SIGINT; a second one ends the process as if there were no handler."""

    def __init__(self) -> None:
        self.is_set = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        """Tell whether to stop."""
        return self.is_set
