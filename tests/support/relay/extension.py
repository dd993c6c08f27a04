"""The relay's optional extension, for tests of the module itself. Importing this compiles it, or skips the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import msgspec
from tests.support.relay.compiling import compile_or_skip

from delaytopic_relay.core.commands import Command, Schedule, SourceMessage
from delaytopic_relay.delivery import outbound
from delaytopic_relay.dialects import native
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.kafka import target

compile_or_skip()

from delaytopic_relay import _packed as extension  # noqa: E402  # compiled only now

__all__ = ["extension", "packed_of", "read_packed", "schedule_of", "switched_on"]


@contextmanager
def switched_on() -> Iterator[None]:
    """Have dialect, addressing and target use the extension meanwhile, as where a relay has found it."""
    with (
        mock.patch.multiple(native, AVAILABLE=True, extension=extension),
        mock.patch.object(outbound, "Packed", extension.Packed),
        mock.patch.multiple(target, AVAILABLE=True, extension=extension),
    ):
        yield


def read_packed(
    policy: NativePolicy, messages: Sequence[SourceMessage], misspelt: Callable[[str], None] | None = None
) -> list[Command]:
    """Read as a relay does that has the extension."""
    with switched_on():
        return NativeDialect(policy, misspelt).read_all(messages)


def schedule_of(command: Command) -> Command:
    """Return the plain schedule with the fields of a packed one; other commands as they are."""
    if type(command) is not extension.Packed:
        return command
    return Schedule(*(getattr(command, field) for field in Schedule.__struct_fields__))


def packed_of(schedules: Sequence[Schedule]) -> list[Schedule]:
    """Return the same schedules packed, which all of them can be."""
    packed = extension.unpack(msgspec.msgpack.encode(schedules))
    assert packed is not None
    return packed
