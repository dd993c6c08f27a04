"""`delaytopic pending` against pages of relays, and against addresses where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.relay.backlog.listings import pending_list

from delaytopic_api.relay import PendingList, PendingRecord, PendingShard
from delaytopic_cli.__main__ import run
from delaytopic_cli.commands.times import before_ms
from delaytopic_gateway.client.relay_listing import relay_url
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


def test_options_become_parameters(pages: Pages) -> None:
    options = ["--due-before", "1795269686270", "--limit", "3", "--partition", "0"]
    code = run(["pending", SOURCE, "--relay", pages.url, *options])

    assert (code, pages.asked) == (0, ["dueBefore=1795269686270&partition=0&limit=3&maxBytes=1048576"])


def test_a_relay_that_is_named_twice_is_asked_once(pages: Pages) -> None:
    run(["pending", SOURCE, "--relay", pages.url, "--relay", f"{pages.url}/"])

    assert pages.asked == ["limit=100&maxBytes=1048576"]


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
        ([], "error: no gateway: name one with --gateway, or start one with: delaytopic local -f FILE"),
        (["--due-before", "soon", "--relay", "a"], 'error: --due-before: "soon" is not a time; '),
    ],
)
def test_wrong_input_is_one_clear_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pending", SOURCE, *arguments]) == 2

    error = capsys.readouterr().err
    assert error.startswith(line)
    assert error.count("\n") == 1
