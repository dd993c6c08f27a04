from __future__ import annotations

from tests.support.relay.verdicts import recorded, verdicts

from delaytopic_relay.core.rules import READER


def test_no_verdict_on_a_record_changes_without_the_version_of_the_reader() -> None:
    # What was refused is a dead letter; read again and taken, it would be delivered beside it.
    assert verdicts() == recorded(READER), "record new verdicts: .venv/bin/python -m tests.support.relay.verdicts"
