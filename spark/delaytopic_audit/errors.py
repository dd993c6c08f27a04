"""Every error of the audit: whose fault it is, and what to do.

AuditError
+-- SettingsError      the caller's: options or files that cannot be used
+-- CannotJudge        the topics': what they hold does not allow a verdict; the text says why, and what would
+-- ReadingError       Kafka's: a range could not be read to its end; nothing was committed, run it again
+-- LedgerError        the ledger's: it cannot be read or written
|   +-- OvertakenError  another audit with the same ledger was quicker: what it wrote counts, and is whole
+-- PublishingError    the published tables': they are as an earlier run left them; the next one makes up for it
+-- SparkMissingError  the machine's: no Spark, or no Java
"""

from __future__ import annotations

from collections.abc import Sequence


class AuditError(Exception):
    """Root of the tree; each means that a run did not give all that it was asked for, which is exit code 2."""


class SettingsError(AuditError):
    """Options or files that cannot be used; the text names them and says what is allowed."""


class CannotJudge(AuditError):
    """The topics do not allow a verdict. One sentence for each reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


class ReadingError(AuditError):
    """A planned range could not be read to its end."""


class LedgerError(AuditError):
    """The ledger cannot be read or written."""


class OvertakenError(LedgerError):
    """Another audit of the same DelayTopic was quicker; this one has changed nothing."""


class PublishingError(AuditError):
    """The published tables cannot be read or written; verdicts and ledger are whole."""


class SparkMissingError(AuditError):
    """Something that Spark needs is not on this machine."""
