"""The verdicts of an audit, and their page, from a server on a free port."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection
from threading import Barrier, Thread
from typing import Any, NamedTuple

import pytest
from tests.unit.audit.sample_report import NOW_MS, sample_report

from delaytopic_audit.report import no_verdict
from delaytopic_cli.audit.publishing import LARGEST_BYTES, status_document, status_text
from delaytopic_cli.audit.serving import PAGE_LINES, Verdicts, serving
from delaytopic_process.errors import InputError

PLAIN = "text/plain; charset=utf-8"
ANYWHERE = ("0.0.0.0", 0)


def document(name: str, at_ms: int, reason: str = "Kafka is away.") -> dict[str, Any]:
    return status_document(no_verdict(name, [reason], at_ms), None)


def verdicts_on(**at_ms: int) -> Verdicts:
    verdicts = Verdicts()
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


def test_a_line_is_a_status_document() -> None:
    verdicts = Verdicts()
    met, long = status_document(sample_report(faulty=False), "r.html"), document("shop/z", NOW_MS, "ä\n" * 9_000)

    verdicts.put(met)
    verdicts.put(long)

    lines, _ = page(verdicts)
    assert lines == [status_text(met), status_text(long)]
    assert json.loads(lines[0]) == met
    assert [len(line.encode()) <= LARGEST_BYTES and "\n" not in line for line in lines] == [True, True]


def test_several_threads_may_put_verdicts_at_once() -> None:
    verdicts, together = Verdicts(), Barrier(4, timeout=60)

    def put(number: int) -> None:
        together.wait()
        for round_ in range(1, 101):
            verdicts.put(document(f"shop/{number}", round_))

    threads = [Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(page(verdicts)[0]) == [status_text(document(f"shop/{number}", 100)) for number in range(4)]


def test_they_are_waited_for_until_the_last_one_is_kept() -> None:
    verdicts, reader = verdicts_on(a=1, b=2), Barrier(2, timeout=60)
    first, last = f"{page(verdicts)[1].partition('-')[0]}-1", page(verdicts)[1]

    def read() -> None:
        reader.wait()
        for mark in ("another-2", "nonsense", first, last):
            verdicts.note_kept(mark)

    before = verdicts.await_kept(0)
    thread = Thread(target=read)
    thread.start()
    reader.wait()

    assert (before, verdicts.await_kept(60)) == (False, True)
    thread.join()


@pytest.mark.parametrize("mark", ["another-2", "nonsense", "", "-2"])
def test_a_mark_of_another_process_keeps_nothing(mark: str) -> None:
    verdicts = verdicts_on(a=1, b=2)

    verdicts.note_kept(mark)

    assert not verdicts.await_kept(0)


def test_where_there_are_none_nobody_is_waited_for() -> None:
    assert Verdicts().await_kept(0)


def test_a_reader_says_with_its_next_question_what_it_has_kept() -> None:
    verdicts = verdicts_on(a=1, b=2)
    _, mark = page(verdicts)
    answer = fetch(f"/verdicts?after={mark}&kept={mark}", verdicts)

    assert (answer.body, verdicts.await_kept(0)) == (f'{{"after": "{mark}"}}\n', True)


class Page(NamedTuple):
    status: int
    content_type: str | None
    body: str


def fetch(target: str, verdicts: Verdicts) -> Page:
    """Ask a server for a page."""
    with serving(ANYWHERE, verdicts) as port:
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


@pytest.mark.parametrize("target", ["/", "/verdicts/", "/livez"])
def test_there_are_no_other_pages(target: str) -> None:
    expected = Page(404, PLAIN, "no such page; there are /verdicts\n")

    assert fetch(target, Verdicts()) == expected


def test_other_methods_are_not_served_and_no_version_is_told() -> None:
    with serving(ANYWHERE, Verdicts()) as port:
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

        with pytest.raises(InputError, match=why), serving(("0.0.0.0", port), Verdicts()):
            pass


def test_the_port_is_free_again_afterwards() -> None:
    with serving(ANYWHERE, Verdicts()) as port:
        pass

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("0.0.0.0", port))
