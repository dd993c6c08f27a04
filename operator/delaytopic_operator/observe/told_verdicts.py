"""Edge: asks the pods of audits for their verdicts, `GET /verdicts`, remembers them, and says what was kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.audit_verdict import VerdictMessage, parsed_message
from delaytopic_operator.observe.relay_pages import RelayPages

DEADLINE_S: Final = 5.0
MOST_PAGES: Final = 20
"""The pages of one look: what is left comes with the next."""
LONGEST_MARK: Final = 64


@dataclass
class _Told:
    """The answers of the pods of one audit by now."""

    messages: dict[Key, VerdictMessage] = field(default_factory=dict)
    """The newest verdict on each DelayTopic."""
    marks: dict[str, str] = field(default_factory=dict)
    """The mark of each pod up to which its verdicts were read."""
    failure: str | None = None
    """The reason why the audit cannot be set up; None if it could be when that was tried last."""


class ToldVerdicts:
    """Thread-safe. What it remembers is lost with the process, and asked for again."""

    def __init__(self, pages: RelayPages) -> None:
        """`pages` reads what pods say of themselves."""
        self._pages = pages
        self._lock = Lock()
        self._audits: dict[Key, _Told] = {}

    def refresh(
        self,
        audit: Key,
        pods: Sequence[Mapping[str, Any]],
        users: Collection[Key],
        is_kept: Callable[[VerdictMessage], bool],
    ) -> None:
        """Ask these pods for what is new since they were asked last; never raises.

        Only of `users`, the DelayTopics of the audit, anything is remembered. A pod whose verdicts are all kept, which
        `is_kept` tells of those that are remembered, hears so: it need not wait any longer.
        """
        with self._lock:
            told = self._audits.setdefault(audit, _Told())
            told.messages = {key: message for key, message in told.messages.items() if key in users}
            names = {pod["metadata"]["name"] for pod in pods}
            told.marks = {name: mark for name, mark in told.marks.items() if name in names}
        for pod in pods:
            for _ in range(MOST_PAGES):
                if not self._read_on(told, pod, users, is_kept):
                    break

    def forget(self, audit: Key) -> None:
        """Forget an audit that is no more."""
        with self._lock:
            self._audits.pop(audit, None)

    def message_of(self, audit: Key, key: Key) -> VerdictMessage | None:
        """Return the last verdict on a DelayTopic; None: nothing was heard."""
        with self._lock:
            told = self._audits.get(audit)
            return told.messages.get(key) if told is not None else None

    def note_failure(self, audit: Key, failure: str | None) -> None:
        """Remember why an audit cannot be set up; None: it is set up."""
        with self._lock:
            if failure is not None or audit in self._audits:
                self._audits.setdefault(audit, _Told()).failure = failure

    def failure_of(self, audit: Key) -> str | None:
        """Return why an audit could not be set up when that was tried last; None: it could, or was not tried yet."""
        with self._lock:
            told = self._audits.get(audit)
            return told.failure if told is not None else None

    def _read_on(
        self, told: _Told, pod: Mapping[str, Any], users: Collection[Key], is_kept: Callable[[VerdictMessage], bool]
    ) -> bool:
        """Read one page; return whether there may be more."""
        name = pod["metadata"]["name"]
        with self._lock:
            mark, messages = told.marks.get(name, ""), list(told.messages.values())
        # All that was told: which pod told it does not matter, and an older verdict counts for no more.
        kept = f"&kept={quote(mark)}" if mark and all(map(is_kept, messages)) else ""
        page = self._pages.fetch(pod, f"/verdicts?after={quote(mark)}{kept}", DEADLINE_S)
        *lines, last = page.splitlines() if page else [b""]
        next_mark = _mark_in(last)
        if next_mark is None:
            return False
        found = [message for message in map(parsed_message, lines) if message is not None]
        with self._lock:
            told.marks[name] = next_mark
            for message in found:
                known = told.messages.get(message.key)
                if message.key in users and (known is None or message.generated_at_ms > known.generated_at_ms):
                    told.messages[message.key] = message
        return bool(lines)


def _mark_in(line: bytes) -> str | None:
    """Return the mark of a page's last line; None for anything else, as of a page that was cut off."""
    try:
        mark = json.loads(line)["after"]
    except (ValueError, TypeError, KeyError):
        return None
    return mark if isinstance(mark, str) and len(mark) <= LONGEST_MARK else None
