"""`delaytopic trial`: its judgement of arrivals, its lines, and options that do not go together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delaytopic_api import Receipt
from delaytopic_cli.__main__ import run
from delaytopic_cli.commands.trial import Arrived, arrival_text, failure, waiting_text
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_gateway.client.watching import Arrival
from delaytopic_local.verifier.verdict import Fate, SourceRecord

SENT_MS = 1_000_000
DUE_MS = SENT_MS + 5_000
SENT = SourceRecord(
    at=Coordinates("shop.trial.delayed", 2, 17),
    sent_ms=SENT_MS,
    fate=Fate.SCHEDULE,
    due_ms=DUE_MS,
    key=b"trial",
    value=b"sent",
    target="shop.trial",
)


def arrived(*, offset: int = 3, sent_ms: int = DUE_MS + 7, value: bytes = b"sent") -> Arrived:
    receipt = Receipt(DUE_MS, SENT.at.partition, SENT.at.offset, sent_ms, SENT.at.topic)
    headers = (("delay-receipt", receipt.encode()),)
    record = RawRecord(Coordinates("shop.trial", 0, offset), sent_ms, b"trial", value, headers)
    return Arrived(record, sent_ms + 20)


def test_a_record_that_arrives_once_unchanged_and_after_its_time_is_no_failure() -> None:
    assert failure(SENT, [arrived()], now_ms=DUE_MS + 2_100) is None


@pytest.mark.parametrize(
    ("arrivals", "reason"),
    [
        (
            [],
            "shop.trial.delayed:2:17 has not arrived on shop.trial, 1 min 0 s after it was due: look at the "
            "DelayTopic's status, and whether delaytopic dead-letters shop.trial.delayed lists it; it may arrive still",
        ),
        (
            [arrived(), arrived(offset=4)],
            "shop.trial.delayed:2:17 has arrived 2 times on shop.trial: that must never happen; keep the relays' logs, "
            "and report it",
        ),
        (
            [arrived(sent_ms=DUE_MS - 40)],
            "shop.trial.delayed:2:17 has arrived 40 ms early on shop.trial: does a relay of the dialect Native deliver "
            "there?",
        ),
        (
            [arrived(value=b"other")],
            "shop.trial.delayed:2:17 has arrived on shop.trial otherwise than it was sent (altered): does a relay of "
            "the dialect Native deliver there, and nobody else?",
        ),
    ],
    ids=["never", "twice", "early", "changed"],
)
def test_a_broken_promise_is_told_with_what_to_do(arrivals: list[Arrived], reason: str) -> None:
    assert failure(SENT, arrivals, now_ms=DUE_MS + 60_000) == reason


def test_a_record_without_a_receipt_is_none_that_a_relay_has_delivered() -> None:
    record = replace(arrived().record, headers=())

    reason = failure(SENT, [Arrived(record, DUE_MS + 20)], now_ms=DUE_MS + 60_000)

    assert reason == (
        "shop.trial.delayed:2:17 has arrived on shop.trial otherwise than it was sent (lost, unknown): does a relay of "
        "the dialect Native deliver there, and nobody else?"
    )


def test_the_line_of_success_tells_both_clocks() -> None:
    receipt = Receipt(DUE_MS, 2, 17, DUE_MS + 7, "shop.trial.delayed")
    arrival = Arrival(0, 3, DUE_MS + 27, b"trial", b"sent", receipt)

    line = arrival_text(arrival, "shop.trial")

    assert line == (
        "arrived once on shop.trial, not early: sent by the relay 7 ms after it was due, read here 27 ms after it"
    )


@pytest.mark.parametrize(
    ("now_ms", "line"),
    [(DUE_MS - 3_000, "due in 3.00 s ..."), (DUE_MS + 61_000, "not there yet, 1 min 1 s after it was due ...")],
)
def test_progress_tells_how_long_it_takes_still_or_how_late_the_record_is(now_ms: int, line: str) -> None:
    assert waiting_text(DUE_MS, now_ms) == line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-b", "h:1"], "--target: name the target topic of the DelayTopic"),
        (["--kafka-config", "{file}", "-b", "h:1"], "--kafka-config has servers and settings: leave -b and -X out"),
        (["--kafka-config", "{file}", "-X", "a=b"], "--kafka-config has servers and settings: leave -b and -X out"),
        (["-b", "h:1", "--after", "5x"], '"5x" is not a duration'),
    ],
    ids=["no target", "two servers", "settings twice", "no duration"],
)
def test_options_that_cannot_be_used_end_it_with_one_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "kafka.yaml"
    file.write_text("bootstrapServers: kafka:9092\n", encoding="utf-8")

    code = run(["trial", "shop.trial.delayed", *(each.format(file=file) for each in options)])

    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert message in line
