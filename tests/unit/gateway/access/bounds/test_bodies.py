"""Bodies that are larger, slower or of another form than requests have: over the port, and message by message."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from starlette.types import Message
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over

from delaytopic_gateway.access.bounds import bodies
from delaytopic_gateway.access.bounds.bodies import MOST_BYTES, Bodies, Refused, demand_simple

BASE = "/v1/delaytopics/shop/reminders"
PART = b"x" * 65_536


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({REMINDERS: []})


def answer_to(scene: Scene, head: str, part: bytes, most_parts: int) -> tuple[bytes, int]:
    """Send a head and then parts until the gateway hangs up; return its answer, and how many parts it took."""
    host, _, port = scene.url.removeprefix("http://").partition(":")
    with closing(socket.create_connection((host, int(port)), timeout=20)) as client:
        client.sendall(f"{head}\r\nHost: {host}\r\nContent-Type: application/json\r\n\r\n".encode())
        sent = 0
        try:
            while sent < most_parts:
                client.sendall(part)
                sent += 1
        except OSError:
            pass
        try:
            return client.recv(65_536), sent
        except OSError:
            return b"", sent


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


@pytest.mark.parametrize("length", ["Content-Length: 10\r\n", ""])
def test_a_body_in_chunks_is_not_read_whatever_length_it_names(scene: Scene, length: str) -> None:
    head = f"POST {BASE}/records HTTP/1.1\r\n{length}Transfer-Encoding: chunked"

    _, taken = answer_to(scene, head, chunk(PART), 1_000)

    assert taken < 1_000
    assert [line.status for line in scene.audit] == [411]


def test_an_endless_body_of_a_request_that_needs_none_ends_the_connection(scene: Scene) -> None:
    head = f"GET {BASE} HTTP/1.1\r\nTransfer-Encoding: chunked"

    _, taken = answer_to(scene, head, chunk(PART), 1_000)

    assert taken < 1_000


def read(owner: str, held: Bodies, *parts: bytes) -> tuple[int, int]:
    """Return the status that a body of these parts is refused with, or 200, and how many of them were asked for."""
    left = [*parts]

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    try:
        asyncio.run(held.read(owner, receive))
    except Refused as error:
        return error.status, len(parts) - len(left)
    return 200, len(parts) - len(left)


def test_a_body_is_read_as_far_as_one_may_reach() -> None:
    allowed = MOST_BYTES // len(PART)

    assert read("a", Bodies(), *[PART] * allowed) == (200, allowed)
    assert read("a", Bodies(), *[PART] * 1_000) == (413, allowed + 1)


def test_a_caller_holds_one_long_body_at_a_time_and_others_theirs() -> None:
    held, long = Bodies(), b"x" * MOST_BYTES

    assert [read(owner, held, long) for owner in ("a", "a", "b", "c")] == [(200, 1), (503, 1), (200, 1), (503, 1)]

    held.forget("a", MOST_BYTES)
    assert read("c", held, long) == (200, 1)


def test_what_was_refused_is_held_no_more() -> None:
    held = Bodies()
    read("a", held, *[PART] * 1_000)

    assert read("a", held, b"x" * MOST_BYTES) == (200, 1)


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "DEADLINE_S", 0.0)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(Refused, match="a body may take") as found:
        asyncio.run(Bodies().read("a", receive))

    assert found.value.status == 408


def test_a_record_with_a_long_text_is_simple() -> None:
    text = json.dumps({"value": json.dumps([{"a": [1, "\\", '"']}] * 10_000), "headers": [{"name": "a"}] * 200})

    demand_simple(text.encode())


@pytest.mark.parametrize(
    "document",
    [
        b"[" + b"[]," * 100_000 + b"[]]",
        b'{"a":' + b"[" * 100_000,
        b"{" + b'"a":1,' * 100_000 + b'"a":1}',
        b"{" + b'"a\\\\":1,' * 100_000 + b'"a":1}',
        b'["",' + b"[]," * 100_000 + b'""]',
        '["a",[],[]]'.encode("utf-16"),
        b'"' + b"\\" * 100_000 + b'",' + b"[]," * 100_000,
    ],
    ids=["lists", "depth", "fields", "fields with a backslash", "between texts", "UTF-16", "many backslashes"],
)
def test_json_that_consists_of_anything_but_texts_is_refused(document: bytes) -> None:
    with pytest.raises(Refused):
        demand_simple(document)


def test_such_a_body_is_refused_before_it_is_taken_apart(scene: Scene) -> None:
    answer = scene.send("POST", f"{BASE}/records", {f"field {number}": [] for number in range(50_000)})

    assert (answer.status, answer.document) == (
        413,
        {"message": "the body has too many parts: it may have 65536 bytes beside texts"},
    )


def test_a_form_of_too_many_fields_is_refused(scene: Scene) -> None:
    answer = scene.send("POST", "/delaytopics/shop/reminders/schedule", b"&".join([b"a=1"] * 65))

    assert (answer.status, answer.document) == (400, {"message": "a form has at most 64 fields"})
