"""`delaytopic pending` against pages of relays, and against addresses where there are none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.relay.backlog.listings import pending_list
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_api.relay import DueBin, PendingList, PendingRecord, PendingShard
from delaytopic_cli.__main__ import run
from delaytopic_cli.commands.pending import before_ms
from delaytopic_gateway.client.pending import report, span_text, table_lines
from delaytopic_gateway.client.relay_listing import RelayAnswer, relay_url
from delaytopic_local.session.state import LocalState, write_state
from delaytopic_process.errors import InputError
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.telemetry.server import Health, PageServer

SOURCE = "shop.reminders.delayed"
NOW_MS = 1_795_269_600_000
RECORDS = [
    PendingRecord(
        due_ms=NOW_MS + 90_000,
        partition=0,
        offset=17,
        target="shop.reminders",
        id="order-17",
        key="k",
        value_bytes=1_234,
    ),
    PendingRecord(
        due_ms=NOW_MS + 7_200_000, partition=0, offset=3, target="shop.other", key_base64="/w==", key_bytes=1
    ),
]
LIST = pending_list(
    pending=2,
    next_due_ms=NOW_MS + 90_000,
    ingest_lag=5,
    shards=[PendingShard(partition=0, listed=True)],
    records=RECORDS,
)


class Pages:
    """The pages of a relay, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.busy = False
        self.listed = LIST
        healthy = Health(True, "running")
        self.server = PageServer(
            "127.0.0.1",
            0,
            health=lambda: healthy,
            readiness=lambda: healthy,
            metrics=lambda: b"",
            status=lambda: pytest.fail("nobody asks for it"),
            pending=self.pending,
        )

    def pending(self, parameters: str) -> PendingList:
        self.asked.append(parameters)
        if self.busy:
            raise Unavailable("the loop is busy")
        return self.listed

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


@pytest.fixture
def pages() -> Iterator[Pages]:
    pages = Pages()
    pages.server.start()
    yield pages
    pages.server.stop()


@pytest.fixture(autouse=True)
def nothing_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DELAYTOPIC_RELAYS", raising=False)


def test_into_a_pipe_it_writes_json(pages: Pages, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pending", SOURCE, "--relay", pages.url]) == 0

    assert (
        json.loads(capsys.readouterr().out)
        == report(SOURCE, [RelayAnswer(pages.url, LIST)], 100, of_all=True).to_json()
    )


def test_options_become_parameters(pages: Pages) -> None:
    options = ["--due-before", "1795269686270", "--limit", "3", "--partition", "0"]
    code = run(["pending", SOURCE, "--relay", pages.url, *options])

    assert (code, pages.asked) == (0, ["limit=3&dueBefore=1795269686270&partition=0"])


def test_a_relay_that_is_named_twice_is_asked_once(pages: Pages) -> None:
    run(["pending", SOURCE, "--relay", pages.url, "--relay", f"{pages.url}/"])

    assert pages.asked == ["limit=100"]


def test_without_a_relay_those_of_the_running_local_are_asked(pages: Pages) -> None:
    write_state(LocalState(os.getpid(), "127.0.0.1:1", None, (), (pages.url,)))

    assert (run(["pending", "reminders"]), pages.asked) == (0, ["limit=100"])


def test_a_table_is_for_people(
    pages: Pages, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert run(["pending", SOURCE, "--relay", pages.url, "-o", "table"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "shop/reminders (source shop.reminders.delayed)"
    assert lines[3].split() == ["DUE", "IN", "SOURCE", "TARGET", "ID", "KEY", "BYTES"]
    assert len(lines) == 6


def test_lines_of_the_table_say_when_whence_and_whither() -> None:
    lines = list(table_lines(report(SOURCE, [RelayAnswer("u", LIST)], 100), now_ms=NOW_MS, width=200))

    first, second = (line.split() for line in lines[4:6])
    assert first[-6:] == ["1m30s", "0:17", "shop.reminders", "order-17", "k", "1,234"]
    assert second[-6:] == ["2h", "0:3", "shop.other", "-", "base64:/w==", "-"]


def test_the_table_says_why_it_is_not_complete() -> None:
    told = [RelayAnswer("http://a", LIST), RelayAnswer("http://b", problem="does not answer: refused")]

    lines = list(table_lines(report(SOURCE, told, 100), now_ms=NOW_MS, width=200))

    assert lines[-1] == "not complete: http://b does not answer: refused"


def test_the_summary_counts_and_adds_up_what_is_due() -> None:
    bins = [
        DueBin(up_to_ms=NOW_MS + edge_ms, records=records)
        for edge_ms, records in ((1_000, 0), (5_000, 2), (100_000, 1_200))
    ]
    counted = LIST.model_copy(update={"pending": 12_480, "overdue": 1, "due_histogram": bins})

    lines = list(table_lines(report(SOURCE, [RelayAnswer("u", counted)], 100), now_ms=NOW_MS, width=200))

    assert lines[1].startswith("12,480 pending, 1 overdue, next due ")
    assert lines[1].endswith(", 5 not yet taken in")
    assert lines[2] == "due within 5s: 2, 1m40s: 1,202"


def test_a_key_cannot_break_out_of_its_line() -> None:
    nasty = LIST.model_copy(update={"records": [RECORDS[0].model_copy(update={"key": "a\x1b[2J\nb" + "x" * 100})]})

    lines = list(table_lines(report(SOURCE, [RelayAnswer("u", nasty)], 100), now_ms=NOW_MS, width=200))

    assert "a [2J bxxxxxxxxxxxxxxxx…" in lines[4]


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (-1, "late"),
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (90_500, "1m30s"),
        (3_600_000, "1h"),
        (90_061_000, "1d1h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(span_ms: int, text: str) -> None:
    assert span_text(span_ms) == text


def test_nobody_there_is_an_error_with_the_address(pages: Pages, capsys: pytest.CaptureFixture[str]) -> None:
    pages.server.stop()

    assert run(["pending", SOURCE, "--relay", "127.0.0.1:1"]) == 5
    assert capsys.readouterr().err == (
        "error: no relay told what is pending: http://127.0.0.1:1 does not answer: [Errno 111] Connection refused; "
        "ask again when they answer\n"
    )


def test_a_relay_that_cannot_answer_now_says_why(pages: Pages, capsys: pytest.CaptureFixture[str]) -> None:
    pages.busy = True

    assert run(["pending", SOURCE, "--relay", pages.url]) == 5
    assert capsys.readouterr().err == (
        f"error: no relay told what is pending: {pages.url} answered 503: the loop is busy; "
        "ask again when they answer\n"
    )


def test_a_page_that_is_no_relays_is_told(pages: Pages, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pending", SOURCE, "--relay", f"{pages.url}/somewhere"]) == 5
    assert "answered 404: no such page" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "ftp://a", "http://", "http://a:x", "http://a:0", "http://a?b", "http://u:p@a"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--relay takes the address"):
        relay_url(text)


@pytest.mark.parametrize(
    ("text", "url"), [("a:8080", "http://a:8080"), ("https://a/b/", "https://a/b"), ("[::1]:80", "http://[::1]:80")]
)
def test_the_scheme_may_be_left_out(text: str, url: str) -> None:
    assert relay_url(text) == url


@pytest.mark.parametrize(
    ("text", "before"),
    [("1795269686270", 1_795_269_686_270), ("1970-01-01T00:00:01Z", 1_000), ("90s", 190_000)],
)
def test_the_time_is_a_point_or_a_duration_from_now(text: str, before: int) -> None:
    assert before_ms(text, now_ms=100_000) == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "error: no relay: name its pages with --relay URL, or start one with: delaytopic local -f FILE"),
        (["--due-before", "soon", "--relay", "a"], 'error: --due-before: "soon" is not a time; '),
    ],
)
def test_wrong_input_is_one_clear_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pending", SOURCE, *arguments]) == 2

    error = capsys.readouterr().err
    assert error.startswith(line)
    assert error.count("\n") == 1


def test_a_local_whose_relays_are_not_up_yet_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    write_state(LocalState(os.getpid(), "127.0.0.1:1", None))

    assert run(["pending", SOURCE]) == 2
    assert "not up yet" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_field_of_a_record_reaches_the_terminal_as_a_command(
    form: str, pages: Pages, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    record = RECORDS[0].model_copy(update={"target": HOSTILE, "id": HOSTILE, "key": HOSTILE})
    pages.listed = LIST.model_copy(update={"records": [record], "message": HOSTILE, "complete": False})

    assert run(["pending", SOURCE, "--relay", pages.url, "-o", form]) == 0

    out = capsys.readouterr().out
    assert HARMLESS in out
    assert [line for line in out.split("\n") if not line.isprintable()] == []
