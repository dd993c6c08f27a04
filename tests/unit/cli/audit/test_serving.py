"""The verdicts of audits that go on, and their pages, from a server on a free port."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from http.client import HTTPConnection
from threading import Barrier, Thread
from typing import Any, NamedTuple

import pytest
from tests.unit.audit.sample_report import NOW_MS, sample_report

from delaytopic_api import Duration
from delaytopic_audit.report import no_verdict
from delaytopic_cli.audit.publishing import LARGEST_BYTES, status_document, status_text
from delaytopic_cli.audit.serving import PAGE_LINES, Verdicts, live_seconds, serving
from delaytopic_process.errors import InputError
from delaytopic_process.pages import Health

PLAIN = "text/plain; charset=utf-8"
LIVE_S = 3_600.0
ANYWHERE = ("0.0.0.0", 0)


def at_zero() -> float:
    return 0.0


def document(name: str, at_ms: int, reason: str = "Kafka is away.") -> dict[str, Any]:
    return status_document(no_verdict(name, [reason], at_ms), None)


def verdicts_on(**at_ms: int) -> Verdicts:
    verdicts = Verdicts(at_zero)
    for name, generated_at_ms in at_ms.items():
        verdicts.put(document(f"shop/{name}", generated_at_ms))
    return verdicts


def lines_on(**at_ms: int) -> list[str]:
    return [status_text(document(f"shop/{name}", generated_at_ms)) for name, generated_at_ms in at_ms.items()]


def page(verdicts: Verdicts, mark: str = "") -> tuple[list[str], str]:
    """Return the lines of a page, and the mark at its end."""
    *lines, last = verdicts.after(mark)
    return lines, json.loads(last)["after"]


def test_all_verdicts_are_listed_in_the_order_in_which_they_were_given() -> None:
    assert page(verdicts_on(b=2, c=1, a=3))[0] == lines_on(b=2, c=1, a=3)


def test_after_a_mark_those_are_listed_that_came_later_whatever_their_own_time() -> None:
    verdicts = verdicts_on(a=5, b=5)
    _, mark = page(verdicts)
    verdicts.put(document("shop/c", 1))

    (lines, later), (nothing, same) = page(verdicts, mark), page(verdicts, page(verdicts, mark)[1])

    assert (lines, nothing) == (lines_on(c=1), [])
    assert mark != later == same


@pytest.mark.parametrize("mark", ["", "-", "0-2", "0badc0de-2", "-2", "\u0663-\u0662"])
def test_after_a_mark_of_another_process_all_are_listed(mark: str) -> None:
    assert page(verdicts_on(a=1, b=2), mark)[0] == lines_on(a=1, b=2)


def test_a_page_has_a_bounded_number_of_lines_and_the_next_goes_on() -> None:
    verdicts = verdicts_on(**{f"n{number}": 1 for number in range(PAGE_LINES + 2)})

    first, mark = page(verdicts)
    second, _ = page(verdicts, mark)

    assert (len(first), second) == (PAGE_LINES, lines_on(**{f"n{PAGE_LINES}": 1, f"n{PAGE_LINES + 1}": 1}))


def test_a_verdict_takes_the_place_of_the_one_before() -> None:
    verdicts = verdicts_on(a=1, b=1)

    verdicts.put(document("shop/a", 2))

    assert page(verdicts)[0] == lines_on(b=1, a=2)


def test_verdicts_on_other_delay_topics_are_dropped() -> None:
    verdicts = verdicts_on(a=1, b=1, c=1)

    verdicts.keep_only({"shop/a", "shop/c", "shop/new"})

    assert page(verdicts)[0] == lines_on(a=1, c=1)


def test_a_line_is_what_a_status_file_would_hold() -> None:
    verdicts = Verdicts(at_zero)
    met, long = status_document(sample_report(faulty=False), "r.html"), document("shop/z", NOW_MS, "ä\n" * 9_000)

    verdicts.put(met)
    verdicts.put(long)

    lines, _ = page(verdicts)
    assert lines == [status_text(met), status_text(long)]
    assert json.loads(lines[0]) == met
    assert [len(line.encode()) <= LARGEST_BYTES and "\n" not in line for line in lines] == [True, True]


def test_several_threads_may_put_verdicts_at_once() -> None:
    verdicts, together = Verdicts(at_zero), Barrier(4, timeout=60)

    def put(number: int) -> None:
        together.wait()
        for round_ in range(1, 101):
            verdicts.put(document(f"shop/{number}", round_))
            verdicts.keep_only({f"shop/{each}" for each in range(4)})

    threads = [Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(page(verdicts)[0]) == [status_text(document(f"shop/{number}", 100)) for number in range(4)]


@pytest.mark.parametrize(
    ("sign", "what"),
    [
        (lambda _: None, "this process began"),
        (Verdicts.round_began, "the present round began"),
        (Verdicts.round_ended, "the last round ended"),
        (lambda verdicts: verdicts.put(document("shop/a", 1)), "the last verdict was given"),
    ],
    ids=["a process that began", "a round that began", "a round that ended", "a verdict"],
)
def test_a_sign_of_life_counts_for_a_while(sign: Callable[[Verdicts], object], what: str) -> None:
    now_s = 1_000.0
    verdicts = Verdicts(lambda: now_s)
    now_s = 1_000.0 if what == "this process began" else 2_000.0
    sign(verdicts)
    began_s = now_s

    now_s = began_s + 3_599.9
    assert verdicts.health(LIVE_S) == Health(True, "ok")
    now_s = began_s + 3_600
    assert verdicts.health(LIVE_S) == Health(False, f"{what} 3600 s ago, and nothing since; 3600 s are the limit")


@pytest.mark.parametrize(("every", "expected"), [("1s", 3_600), ("20m", 3_600), ("20m1s", 3_603), ("6h", 64_800)])
def test_three_rounds_are_waited_for_and_an_hour_at_least(every: str, expected: float) -> None:
    assert live_seconds(Duration(every)) == expected


class Page(NamedTuple):
    status: int
    content_type: str | None
    body: str


def fetch(target: str, verdicts: Verdicts) -> Page:
    """Ask a server for a page."""
    with serving(ANYWHERE, verdicts, LIVE_S) as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            return Page(answer.status, answer.getheader("Content-Type"), answer.read().decode())
        finally:
            connection.close()


@pytest.mark.parametrize("target", ["/verdicts", "/verdicts?after=", "/verdicts?after=x&after=y"])
def test_the_page_of_verdicts_has_a_line_for_each_and_the_mark(target: str) -> None:
    verdicts = verdicts_on(b=2, a=1)
    body = "".join(f"{line}\n" for line in verdicts.after(""))

    assert fetch(target, verdicts) == Page(200, "application/x-ndjson", body)


def test_the_page_of_verdicts_goes_on_after_a_mark() -> None:
    verdicts = verdicts_on(a=1)
    _, mark = page(verdicts)

    assert fetch(f"/verdicts?after={mark}", verdicts).body == f'{{"after": "{mark}"}}\n'


def test_a_service_that_is_alive_says_so() -> None:
    assert fetch("/livez", Verdicts(at_zero)) == Page(200, PLAIN, "ok\n")


def test_a_service_that_hangs_says_since_when() -> None:
    times = iter([0.0, 3_600.0])
    expected = Page(503, PLAIN, "this process began 3600 s ago, and nothing since; 3600 s are the limit\n")

    assert fetch("/livez", Verdicts(lambda: next(times))) == expected


@pytest.mark.parametrize("target", ["/", "/verdicts/", "/metrics"])
def test_there_are_no_other_pages(target: str) -> None:
    expected = Page(404, PLAIN, "no such page; there are /livez, /verdicts\n")

    assert fetch(target, Verdicts(at_zero)) == expected


def test_other_methods_are_not_served_and_no_version_is_told() -> None:
    with serving(ANYWHERE, Verdicts(at_zero), LIVE_S) as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/verdicts")
        answer = connection.getresponse()
        connection.close()

    assert (answer.status, answer.getheader("Server")) == (501, "delaytopic-audit")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        why = rf"--serve: cannot listen on 0\.0\.0\.0:{port}: .*in use.*; choose another, or port 0 for any free one"

        with pytest.raises(InputError, match=why), serving(("0.0.0.0", port), Verdicts(at_zero), LIVE_S):
            pass


def test_the_port_is_free_again_afterwards() -> None:
    with serving(ANYWHERE, Verdicts(at_zero), LIVE_S) as port:
        pass

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("0.0.0.0", port))
