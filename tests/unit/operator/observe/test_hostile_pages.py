"""Pages of a tenant's own image: whatever they hold, the operator's memory, threads and time are bounded."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from time import monotonic

import pytest
from tests.support.operator.hostile_server import Answer, drip, hostile_server, pour
from tests.unit.operator.observe.test_relay_pages import pod, status_page

from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.relay_pages import RelayPages

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
MIB = 1 << 20


def whole(body: bytes) -> Answer:
    return lambda connection, _: connection.sendall(HEAD + body)


def page_with(field: str, item: bytes, size: int) -> bytes:
    """A page of this size, nearly all of it items of a list."""
    text = status_page().to_json().encode()
    items = b",".join([item] * (size // (len(item) + 1)))
    return text.replace(f'"{field}":[]'.encode(), b'"' + field.encode() + b'":[' + items + b"]")


READ = """
import json, sys
from delaytopic_operator.observe.relay_pages import RelayPages

def memory(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) // 1024

pages, before = RelayPages(15.0), memory("VmRSS")
read = [page for pod in json.loads(sys.argv[1]) for page in pages.read([pod], 20)]
print(json.dumps([memory("VmHWM") - before, [page.failure for page in read]]))
"""


def test_pages_cost_little_memory_whatever_they_hold() -> None:
    bodies = [
        page_with("shards", b"1", 512 << 10),
        page_with("dueHistogram", b'{"upToMs":1,"records":1}', 512 << 10),
        page_with("dueHistogram", b'{"upToMs":1,"records":1}', 8 * MIB),
        b"[" * (8 * MIB + 1),
    ]
    with ExitStack() as stack:
        ports = [stack.enter_context(hostile_server(whole(body))) for body in bodies]
        pods = json.dumps([pod("a", port) for port in ports])
        # A process of its own: what pydantic takes is not Python's, and what others took does not count.
        ran = subprocess.run([sys.executable, "-c", READ, pods], capture_output=True, text=True, check=True)
    peak_mib, failures = json.loads(ran.stdout)

    too_much = "answers, with other relays, more than 8388608 bytes or 240000 values"
    assert failures == [too_much, None, too_much, too_much]
    assert peak_mib < 48


@pytest.mark.parametrize(
    "answer",
    [
        drip(HEAD, b"x"),
        drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        pour(HEAD + b"{", b" " * 65_536),
    ],
    ids=["body", "headers", "continue", "endless"],
)
def test_a_pod_that_never_ends_to_answer_holds_nobody_up_beyond_the_deadline(answer: Answer, pages: RelayPages) -> None:
    with hostile_server(answer) as port, hostile_server(whole(status_page().to_json().encode())) as good:
        began = monotonic()
        (page,) = pages.read([pod("a", port)], 0.5)
        took_s = monotonic() - began
        others = pages.read([pod("b", good)], 10)

    assert page.status is None
    assert took_s < 2
    assert others == [RelayPage("b", status_page(), None)]


def test_the_pods_of_one_delay_topic_hold_up_no_other(pages: RelayPages) -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(hostile_server(drip(HEAD, b"x")))
        good = stack.enter_context(hostile_server(whole(status_page().to_json().encode())))
        hostile = threading.Thread(target=pages.read, args=([pod(f"h{n}", silent) for n in range(64)], 3))
        hostile.start()

        read = pages.read([pod("b", good)], 2)

        still_reads = hostile.is_alive()
        hostile.join()

        assert still_reads
        assert read == [RelayPage("b", status_page(), None)]
