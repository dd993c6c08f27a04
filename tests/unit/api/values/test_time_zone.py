from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from delaytopic_api.errors import InvalidText
from delaytopic_api.values import TimeZone


def test_a_zone_has_the_offsets_of_its_clocks() -> None:
    zone = TimeZone("Europe/Berlin").zone

    offsets = [datetime(2026, month, 1, tzinfo=UTC).astimezone(zone).utcoffset() for month in (1, 7)]

    assert offsets == [timedelta(hours=1), timedelta(hours=2)]


@pytest.mark.parametrize("text", ["Europe/Berln", "Europe", "localtime", "Europe/../../x", "", "Z" * 65])
def test_what_is_no_zone_everywhere_is_refused(text: str) -> None:
    with pytest.raises(InvalidText) as refused:
        TimeZone(text)

    assert str(refused.value) == (
        f'"{text}" is not a known time zone; write it as the IANA does, like Europe/Berlin or UTC'
    )
