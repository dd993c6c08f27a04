"""An operator for which a source is silent after five seconds, so that it scales to zero within a test."""

from __future__ import annotations

from delaytopic_operator.__main__ import main
from delaytopic_operator.scaling import rules

SILENT_MS = 5_000

if __name__ == "__main__":
    rules.SILENT_MS = SILENT_MS
    main()
