"""Fixtures of tests of several parts of the operator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delaytopic_operator.observe.relay_pages import RelayPages


@pytest.fixture
def pages() -> Iterator[RelayPages]:
    found = RelayPages(poll_s=15.0)
    yield found
    found.close()
