"""The records that a relay writes to the topic of outcomes, beside the schema that is published for their readers."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS

from delaytopic_api.relay import Ending, Outcome

pytestmark = [pytest.mark.integration, BUCKETS_NIGHTLY]

SCHEMA = json.loads((ROOT / "docs/schemas/outcome.json").read_text(encoding="utf-8"))
CANCEL = ("deliver-action", b"cancel")


def unknown_fields(document: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Return the names that the schema does not have, of a document and all in it."""
    known = schema["properties"]
    within = (unknown_fields(part, known[name]) for name, part in document.items() if isinstance(part, dict))
    return {name for name in document if name not in known}.union(*within)


def test_each_outcome_that_a_relay_writes_keeps_the_published_schema(make_route: MakeRoute) -> None:
    route = make_route(outcomes={})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    now, later = at(now_ms()), at(now_ms() + 1_800_000)
    by = ("deliver-requested-by", "Ann, größte".encode())
    records = [
        Sent(None, b"without an id", [now], 0),
        Sent(b"k", b"v", [later, ("deliver-id", b"cancelled")], 0),
        Sent(b"k", None, [CANCEL, ("deliver-id", b"cancelled"), by], 0),
        Sent(b"k", b"v", [later, ("deliver-id", b"\xff\x00")], 0),
        Sent(b"k", b"v", [now, ("deliver-id", b"\xff\x00"), by], 0),
        Sent(b"k", None, [CANCEL, ("deliver-id", b"nobody")], 0),
        Sent(b"k", b"v", [("deliver-at", b"soon"), ("deliver-id", b"unreadable")], 0),
        Sent(b"k", b"v", [now, ("deliver-to", b"forbidden")], 0),
    ]

    produce(route.servers.bootstrap_servers, route.source, records)

    # One for each, but for the cancel that won: it is told by the end of its schedule.
    written = wait_for(lambda: len(found := route.read(route.outcomes)) == len(records) - 1 and found, relay.why)
    documents = [json.loads(record.value) for record in written]
    assert {each["outcome"] for each in documents} == {*map(str, Ending)}
    for document in documents:
        jsonschema.validate(document, SCHEMA, jsonschema.Draft7Validator)
        assert unknown_fields(document, SCHEMA) == set()
        assert Outcome.model_validate(document).to_document() == document
    places = {f"{route.source}:0:{offset}".encode() for offset in (0, 7)}
    assert {record.key for record in written} == {b"cancelled", b"\xff\x00", b"nobody", b"unreadable", *places}
