"""Both implementations of what waits, for tests of them. Importing this compiles the one in C, or skips the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from tests.support.relay.compiling import compile_or_skip
from tests.support.relay.schedules import FIELDS

from delaytopic_relay.core import _pyentries
from delaytopic_relay.core.commands import Command, Schedule, SourceMessage
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy

compile_or_skip()

from delaytopic_relay import _speedups  # noqa: E402  # compiled only now

__all__ = ["BOTH", "FIELDS", "comparable", "in_c", "in_python", "of", "read"]

in_c: Final[Any] = _speedups
in_python: Final[Any] = _pyentries
BOTH: Final = pytest.mark.parametrize("entries", [in_c, in_python], ids=["in C", "in Python"])


def of(entries: Any, schedules: Sequence[Schedule]) -> list[Schedule]:
    """Return equal schedules of an implementation."""
    return [entries.Schedule(*(getattr(schedule, field) for field in FIELDS)) for schedule in schedules]


def comparable(command: object) -> object:
    """Return the fields of a schedule, whichever implementation it is of; another command as it is."""
    if type(command).__name__ != "Schedule":
        return command
    return tuple(getattr(command, field) for field in FIELDS)


def read(
    entries: Any,
    policy: NativePolicy,
    messages: Sequence[SourceMessage],
    misspelt: Callable[[str], None] | None = None,
) -> list[Command]:
    """Read as the native dialect does with an implementation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("delaytopic_relay.dialects.native.read", entries.read)
        return NativeDialect(policy, misspelt).read_all(messages)
