"""Time zones by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.crd_cases import document_of

from delaytopic_api import InvalidDocument, load_document
from delaytopic_api.errors import InvalidText
from delaytopic_api.values import TimeZone


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_a_zone_is_known_by_the_name_that_the_iana_gave_it(name: str) -> None:
    assert TimeZone(name).zone.key == TimeZone(name) == name


def test_a_zone_knows_its_offsets_in_summer_and_in_winter() -> None:
    zone = TimeZone("Europe/Berlin").zone

    offsets = [datetime(2026, month, 1, tzinfo=UTC).astimezone(zone).utcoffset() for month in (1, 7)]

    assert offsets == [timedelta(hours=1), timedelta(hours=2)]


@pytest.mark.parametrize(
    "name", ["Europe/Berln", "Europe", "europe/berlin", "localtime", "Europe/../UTC", "/UTC", "+01:00", "A" * 65, ""]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidText, match="is not a known time zone; write it as the IANA does"):
        TimeZone(name)


def test_a_delay_topic_of_a_zone_that_nobody_knows_is_refused_for_its_field() -> None:
    slo = {"calendar": "Month", "timeZone": "Europe/Berln"}

    with pytest.raises(InvalidDocument) as refused:
        load_document(document_of({"with": {"spec": {"slo": slo}}}))

    assert 'spec.slo.timeZone: "Europe/Berln" is not a known time zone; write it as the IANA' in str(refused.value)
