"""Losses that a person accepts on a relay's command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.relay.route import Route, Servers

from delaytopic_relay.__main__ import with_accepted
from delaytopic_relay.errors import ConfigurationError

CONFIG = Route(Servers("127.0.0.1:9092", "redis://127.0.0.1"), Path(), "shop").config()
TOPIC_ID = "CL_6lpNDTRuXnSPw4rmzIQ"


def test_flags_take_the_place_of_what_is_written_in_the_configuration() -> None:
    source = with_accepted(CONFIG, TOPIC_ID, "2026-11-26T22:00:00Z").source

    assert (source.topic, source.accepted_topic_id) == (CONFIG.source.topic, TOPIC_ID)
    assert source.accept_repeats is not None
    assert source.accept_repeats.ms == 1_795_730_400_000


def test_without_flags_the_configuration_stays_as_it_is() -> None:
    assert with_accepted(CONFIG, None, None) == CONFIG


@pytest.mark.parametrize(("topic_id", "until"), [("CL_6lpND", None), (None, "tomorrow")])
def test_what_is_no_id_and_no_time_is_refused(topic_id: str | None, until: str | None) -> None:
    with pytest.raises(ConfigurationError, match="--accept-source or --accept-repeats"):
        with_accepted(CONFIG, topic_id, until)
