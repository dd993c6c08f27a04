"""Tests that relays read what the services that their dialects stand in for read, down to odd inputs.

`python -m tests.support.relay.originals` runs those services' readers, and records what they read.
"""

from __future__ import annotations

import pytest
from tests.support.relay.originals import corpus


@pytest.mark.parametrize("name", corpus.NAMES)
def test_a_relay_reads_what_the_original_reads_but_for_what_differs_on_purpose(name: str) -> None:
    recorded = {text: verdict.ours for text, verdict in corpus.read(name).items()}

    assert {text: corpus.verdict_of(name, text) for text in recorded} == recorded


@pytest.mark.parametrize("name", ["cesium", "kaspr", "scheduler_epoch", "timebridge"])
def test_nothing_leaves_earlier_than_with_the_original(name: str) -> None:
    numbers = {text: verdict for text, verdict in corpus.read(name).items() if verdict.ours.isdigit()}

    assert {text for text, (theirs, ours) in numbers.items() if theirs.isdigit() and int(ours) < int(theirs)} == set()
