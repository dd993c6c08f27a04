"""Schedules that wait, and what is done with many of them at once: in C where that was compiled, else in Python.

Both implementations export the names below, and give the same. The one in C (`relay/speedups`) keeps a schedule in the
bytes of its entry, and makes an object of a field when somebody asks for it. The one in Python is `core._pyentries`,
which has all that their users need to know of them.

The environment variable `DELAYTOPIC_SPEEDUPS`, if it is 0, has Python do all of it; if it is 1, a relay without the one
in C does not start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from delaytopic_relay.core import _pyentries
from delaytopic_relay.core._pyentries import (
    ENTRY_BYTES,
    HEADER_BYTES,
    ID_BYTES,
    NO_CONTROL_HEADER,
    SEVERAL_CONTROL_HEADERS,
    Group,
    Sizes,
    Span,
    Summary,
)
from delaytopic_relay.errors import ConfigurationError

__all__ = [
    "ENTRY_BYTES",
    "HEADER_BYTES",
    "ID_BYTES",
    "NO_CONTROL_HEADER",
    "SCHEDULE_BYTES",
    "SEVERAL_CONTROL_HEADERS",
    "SPEEDUPS",
    "Group",
    "Schedule",
    "Sizes",
    "Span",
    "Summary",
    "all_plain",
    "by_span",
    "check_speedups",
    "due_at",
    "grouped",
    "make_sender",
    "ordered",
    "pack",
    "plugin",
    "read",
    "size",
    "sizes",
    "summary",
    "unnamed",
    "unpack",
]

VARIABLE: Final = "DELAYTOPIC_SPEEDUPS"

_asked_for: Final = os.environ.get(VARIABLE, "")

if TYPE_CHECKING:
    from delaytopic_relay import _speedups
    from delaytopic_relay.core._pyentries import (
        Schedule,
        all_plain,
        by_span,
        due_at,
        grouped,
        ordered,
        pack,
        read,
        size,
        sizes,
        summary,
        unnamed,
        unpack,
    )

    make_sender: Callable[[], _speedups.Sender] | None
    """Makes what sends plain schedules through the Kafka client's own library; None where Python sends each record."""
    plugin: str
    """The file that a producer loads for such a sender; "" without one."""
    _missing: str
else:
    try:
        if _asked_for == "0":
            raise ImportError(f"{VARIABLE} is 0")
        from delaytopic_relay import _speedups as _chosen

        make_sender, plugin, _missing = _chosen.Sender, _chosen.__file__, ""
    except ImportError as error:
        _chosen, make_sender, plugin, _missing = _pyentries, None, "", str(error)
    Schedule, read, pack, unpack = _chosen.Schedule, _chosen.read, _chosen.pack, _chosen.unpack
    unnamed, summary, size, sizes = _chosen.unnamed, _chosen.summary, _chosen.size, _chosen.sizes
    all_plain, by_span, grouped = _chosen.all_plain, _chosen.by_span, _chosen.grouped
    ordered, due_at = _chosen.ordered, _chosen.due_at

SCHEDULE_BYTES: Final = size(Schedule(0, 0, None, None, None))
"""The memory of a schedule beside its key, value, headers and id, in the implementation that runs."""

SPEEDUPS: Final = not _missing
"""True if the implementation in C runs; for people."""


def check_speedups() -> None:
    """Raise `ConfigurationError` if the speedups have to be there, and are not, or nobody knows what is asked for."""
    if _asked_for not in {"", "0", "1"}:
        raise ConfigurationError(f"the environment variable {VARIABLE} is {_asked_for!r}: it may be 1 or 0")
    if _asked_for == "1" and _missing:
        missing = f"the environment variable {VARIABLE} is 1, but the speedups cannot be imported ({_missing})"
        raise ConfigurationError(f"{missing}: install a build that has them, or set {VARIABLE} to 0")
