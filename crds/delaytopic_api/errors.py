"""Every error the API package raises: whose fault it is, and what happens next.

ApiError
+-- InvalidText          the author's: one piece of text is not a duration, a quantity or a percentage (a ValueError)
+-- BrokenRules          the author's: fields contradict each other (a ValueError, raised inside a model)
+-- InvalidDocument      the author's: a document cannot be used as written; nothing was changed
+-- Refused              the author's or the platform team's: well formed, but class or defaults do not allow it
+-- MalformedHeader      whoever wrote the record: not a header that a relay writes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One thing to change: where, and what is allowed there."""

    path: str
    """The path of the field, such as `spec.target.allowedTopics[0]`; empty for the whole document."""
    message: str
    subject: str = ""
    """The document, such as `DelayTopic shop/reminders`."""

    def __str__(self) -> str:
        """One line: subject, path and message."""
        return ": ".join(part for part in (self.subject, self.path, self.message) if part)


class ApiError(Exception):
    """Root of the tree."""


class InvalidText(ApiError, ValueError):
    """The text is not what the type asks for; the message shows how to write it."""


class _Problems(ApiError):
    """An error made of problems, each of which has its own line and can be mended by itself."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class BrokenRules(_Problems, ValueError):
    """Fields of one object contradict each other; paths are relative to that object."""


class InvalidDocument(_Problems):
    """One or more documents cannot be used as written."""


class Refused(_Problems):
    """The document is well formed, but its DelayClass, or what follows from the defaults, does not allow it."""


class MalformedHeader(ApiError, ValueError):
    """A header that only relays write holds something else; the record was not delivered by a relay."""
