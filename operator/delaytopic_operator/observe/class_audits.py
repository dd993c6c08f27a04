"""Edge: asks the audits of whole classes for their verdicts, `GET /verdicts` of the pod, and remembers them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.audit_verdict import VerdictMessage, parsed_message
from delaytopic_operator.observe.relay_pages import RelayPages

DEADLINE_S: Final = 5.0
MOST_PAGES: Final = 20
"""Of one look: what is left comes with the next."""
LONGEST_MARK: Final = 64


class ClassAudits:
    """Thread-safe. What it remembers is lost with the process, and asked for again."""

    def __init__(self, pages: RelayPages) -> None:
        """`pages` reads what pods say of themselves."""
        self._pages = pages
        self._lock = Lock()
        self._told: dict[str, dict[Key, VerdictMessage]] = {}
        self._marks: dict[str, dict[str, str]] = {}
        """By class and pod, up to where its verdicts were read."""

    def refresh(self, class_name: str, pods: Sequence[Mapping[str, Any]], users: Collection[Key]) -> None:
        """Ask these pods for what is new since they were asked last; never raises.

        Only of `users`, the DelayTopics of the class, anything is remembered.
        """
        with self._lock:
            told, marks = self._told.get(class_name, {}), self._marks.get(class_name, {})
            self._told[class_name] = {key: message for key, message in told.items() if key in users}
            names = {pod["metadata"]["name"] for pod in pods}
            self._marks[class_name] = {name: mark for name, mark in marks.items() if name in names}
        for pod in pods:
            for _ in range(MOST_PAGES):
                if not self._read_on(class_name, pod, users):
                    break

    def forget(self, class_name: str) -> None:
        """Forget a class that has no such audit."""
        with self._lock:
            self._told.pop(class_name, None)
            self._marks.pop(class_name, None)

    def message_of(self, class_name: str, key: Key) -> VerdictMessage | None:
        """Return the last verdict on a DelayTopic of the class; None: nothing was heard."""
        with self._lock:
            return self._told.get(class_name, {}).get(key)

    def _read_on(self, class_name: str, pod: Mapping[str, Any], users: Collection[Key]) -> bool:
        """Read one page; return whether there may be more."""
        name = pod["metadata"]["name"]
        with self._lock:
            mark = self._marks[class_name].get(name, "")
        page = self._pages.fetch(pod, f"/verdicts?after={quote(mark)}", DEADLINE_S)
        *lines, last = page.splitlines() if page else [b""]
        next_mark = _mark_in(last)
        if next_mark is None:
            return False
        messages = [message for message in map(parsed_message, lines) if message is not None]
        with self._lock:
            self._marks[class_name][name] = next_mark
            told = self._told[class_name]
            for message in messages:
                known = told.get(message.key)
                if message.key in users and (known is None or message.generated_at_ms > known.generated_at_ms):
                    told[message.key] = message
        return bool(lines)


def _mark_in(line: bytes) -> str | None:
    """Return the mark of a page's last line; None for anything else, as of a page that was cut off."""
    try:
        mark = json.loads(line)["after"]
    except (ValueError, TypeError, KeyError):
        return None
    return mark if isinstance(mark, str) and len(mark) <= LONGEST_MARK else None
