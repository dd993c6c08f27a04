from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs
from tests.support.outer_address import outer_address
from tests.support.relay.backlog.listings import pending_list
from tests.support.relay.statuses import relay_status

from delaytopic_api.relay import PendingList, RelayStatus
from delaytopic_api.values import PendingAccess
from delaytopic_process.pages import Request
from delaytopic_relay.errors import BadRequest, ConfigurationError, RelayError, Unavailable
from delaytopic_relay.telemetry.server import Health, PageServer, Readers, is_loopback

HEALTHY = Health(True, "running")
READERS = Readers()
PLAIN = "text/plain; charset=utf-8"
NOT_FROM_HERE = (
    "the list of what is pending is for clients at a loopback address: use kubectl delaytopic pending, or kubectl "
    "port-forward and localhost; the gateway shows the token whose SHA-256 is http.pendingTokenSha256; a relay outside "
    "Kubernetes may be set to http.pending: Anywhere\n"
)
TOKEN = "0123456789abcdef0123456789abcdef"
ADDRESSES = {
    "127.0.0.1": True,
    "127.255.0.9": True,
    "::1": True,
    "::ffff:127.0.0.1": True,
    "::ffff:127.9.9.9": True,
    "10.1.2.3": False,
    "128.0.0.1": False,
    "0.0.0.0": False,
    "fe80::1%eth0": False,
    "fd00::2": False,
    "::": False,
    "::2": False,
    "::127.0.0.1": False,
    "::ffff:10.1.2.3": False,
    "localhost": False,
    "": False,
}


class Page(NamedTuple):
    status: int
    content_type: str | None
    body: str


def page_server(
    host: str = "127.0.0.1",
    port: int = 0,
    readers: Readers = READERS,
    **changes: Callable[..., Any],
) -> PageServer:
    pages: dict[str, Any] = {
        "health": lambda: HEALTHY,
        "readiness": lambda: HEALTHY,
        "metrics": lambda: b"some_metric 1.0\n",
        "status": relay_status,
        "pending": lambda parameters: pending_list(message=parameters),
    }
    return PageServer(host, port, readers=readers, **(pages | changes))


@contextmanager
def serving(server: PageServer) -> Iterator[PageServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def fetch(
    server: PageServer, path: str, method: str = "GET", host: str = "127.0.0.1", authorization: Sequence[str] = ()
) -> Page:
    connection = HTTPConnection(host, server.port, timeout=10)
    try:
        connection.putrequest(method, path)
        for each in authorization:
            connection.putheader("Authorization", each.encode("latin-1"))
        connection.endheaders()
        response = connection.getresponse()
        return Page(response.status, response.getheader("Content-Type"), response.read().decode())
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz?verbose"])
def test_a_relay_in_order_says_so(path: str) -> None:
    with serving(page_server()) as server:
        assert fetch(server, path) == Page(200, PLAIN, "running\n")


@pytest.mark.parametrize(("path", "page"), [("/healthz", "health"), ("/readyz", "readiness")])
def test_a_relay_that_is_not_in_order_answers_503_and_says_why(path: str, page: str) -> None:
    pages: dict[str, Any] = {page: lambda: Health(False, "the loop turned 61000 ms ago")}

    with serving(page_server(**pages)) as server:
        assert fetch(server, path) == Page(503, PLAIN, "the loop turned 61000 ms ago\n")


def test_health_and_readiness_are_separate() -> None:
    with serving(page_server(readiness=lambda: Health(False, "draining"))) as server:
        assert (fetch(server, "/healthz").status, fetch(server, "/readyz").status) == (200, 503)


def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    with serving(page_server()) as server:
        expected = Page(200, "text/plain; version=0.0.4; charset=utf-8", "some_metric 1.0\n")
        assert fetch(server, "/metrics") == expected


def test_the_status_is_the_api_document() -> None:
    with serving(page_server()) as server:
        page = fetch(server, "/status")

    assert (page.status, page.content_type) == (200, "application/json")
    assert RelayStatus.model_validate_json(page.body) == relay_status()


def test_the_status_for_operators_is_the_same_document_with_less_in_it() -> None:
    with serving(page_server()) as server:
        page = fetch(server, "/status?for=operator")

    assert (page.status, page.content_type) == (200, "application/json")
    assert page.body == relay_status().to_operator_json()


def test_what_is_pending_is_the_api_document_for_the_parameters_of_the_address() -> None:
    with serving(page_server()) as server:
        page = fetch(server, "/pending?limit=3&dueBefore=5")

    assert (page.status, page.content_type) == (200, "application/json")
    assert PendingList.model_validate_json(page.body) == pending_list(message="limit=3&dueBefore=5")


@pytest.mark.parametrize(
    ("error", "status"), [(BadRequest("limit=x: it is a number"), 400), (Unavailable("the loop is busy"), 503)]
)
def test_a_request_that_cannot_be_answered_is_told_why(error: RelayError, status: int) -> None:
    def refuse(parameters: str) -> PendingList:
        raise error

    with serving(page_server(pending=refuse)) as server, capture_logs() as lines:
        assert fetch(server, "/pending?limit=x") == Page(status, PLAIN, f"{error}\n")

    assert lines == []


def test_a_list_that_cannot_be_made_now_may_be_asked_for_again_in_some_seconds() -> None:
    def refuse(parameters: str) -> PendingList:
        raise Unavailable("other listings are under way")

    with serving(page_server(pending=refuse)) as server, closing(HTTPConnection("127.0.0.1", server.port)) as client:
        client.request("GET", "/pending")
        response = client.getresponse()

        assert (response.status, response.getheader("Retry-After")) == (503, "5")


def test_a_client_is_let_in_by_a_loopback_address_in_any_form_or_where_all_are() -> None:
    let_in = {address: is_loopback(address) for address in ADDRESSES}
    everybody = Readers(PendingAccess.ANYWHERE)

    assert let_in == ADDRESSES
    assert all(everybody.includes(Request("", address)) for address in ADDRESSES)


@pytest.mark.parametrize(("host", "client"), [("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "127.8.8.8"), ("::1", "::1")])
def test_a_client_at_a_loopback_address_gets_the_list(host: str, client: str) -> None:
    with serving(page_server(host)) as server:
        assert fetch(server, "/pending", host=client).status == 200


def test_a_client_from_elsewhere_gets_no_list_but_what_to_do_and_every_other_page() -> None:
    outer, asked = outer_address(), list[str]()
    with serving(page_server("0.0.0.0", pending=asked.append)) as server:
        refused = [fetch(server, "/pending?limit=3", method, outer) for method in ("GET", "HEAD")]
        others = [fetch(server, path, host=outer).status for path in ("/healthz", "/readyz", "/metrics", "/status")]

    assert refused == [Page(403, PLAIN, NOT_FROM_HERE), Page(403, PLAIN, "")]
    assert (others, asked) == ([200] * 4, [])


def test_a_relay_that_is_told_so_gives_the_list_to_clients_from_elsewhere() -> None:
    outer = outer_address()
    with serving(page_server("0.0.0.0", readers=Readers(PendingAccess.ANYWHERE))) as server:
        assert fetch(server, "/pending", host=outer).status == 200


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ([f"Bearer {TOKEN}"], 200),
        ([f"bearer  {TOKEN} "], 200),
        ([], 403),
        ([""], 403),
        ([TOKEN], 403),
        (["Bearer"], 403),
        (["Bearer "], 403),
        ([f"Basic {TOKEN}"], 403),
        ([f"Bearer {TOKEN}x"], 403),
        ([f"Bearer {sha256(TOKEN.encode()).hexdigest()}"], 403),
        (["Bearer \xff"], 403),
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], 403),
    ],
)
def test_a_client_from_elsewhere_gets_the_list_for_the_token_whose_digest_the_relay_knows(
    shown: list[str], status: int
) -> None:
    readers = Readers(token_sha256=sha256(TOKEN.encode()).hexdigest())
    with serving(page_server("0.0.0.0", readers=readers)) as server:
        found = fetch(server, "/pending", host=outer_address(), authorization=shown)
        own = fetch(server, "/pending")

    assert (found.status, own.status) == (status, 200)


def test_without_a_digest_no_token_helps() -> None:
    with serving(page_server("0.0.0.0")) as server:
        assert fetch(server, "/pending", host=outer_address(), authorization=[f"Bearer {TOKEN}"]).status == 403


def test_a_page_shows_the_present_and_not_the_start() -> None:
    answers = [Health(False, "starting"), HEALTHY]

    with serving(page_server(readiness=lambda: answers.pop(0))) as server:
        assert [fetch(server, "/readyz").status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize("path", ["/", "/health", "/status/", "/../healthz"])
def test_an_unknown_page_is_answered_with_those_there_are(path: str) -> None:
    with serving(page_server()) as server:
        expected = Page(404, PLAIN, "no such page; there are /healthz, /readyz, /metrics, /status, /pending\n")
        assert fetch(server, path) == expected


def test_head_is_answered_without_a_body() -> None:
    with serving(page_server()) as server:
        assert fetch(server, "/healthz", "HEAD") == Page(200, PLAIN, "")


def test_nothing_can_be_written() -> None:
    with serving(page_server()) as server:
        assert fetch(server, "/status", "POST").status == 501


def test_a_page_that_fails_is_answered_with_500_and_the_others_go_on() -> None:
    def broken() -> bytes:
        raise ValueError("secret of the inside")

    with serving(page_server(metrics=broken)) as server, capture_logs() as lines:
        failed, healthy = fetch(server, "/metrics"), fetch(server, "/healthz")

    assert failed == Page(500, PLAIN, "ValueError: see the log\n")
    assert healthy == Page(200, PLAIN, "running\n")
    assert lines == [{"event": "page failed", "path": "/metrics", "exc_info": True, "log_level": "error"}]


def test_requests_are_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(page_server()) as server, capture_logs() as lines:
        fetch(server, "/healthz")
        fetch(server, "/nowhere")

    assert (lines, capfd.readouterr().err) == ([], "")


def test_a_client_that_hangs_up_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(page_server()) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(b"GET /sta")
        page = fetch(server, "/healthz")

    assert page == Page(200, PLAIN, "running\n")
    assert "Traceback" not in capfd.readouterr().err


def test_it_listens_on_ipv6() -> None:
    with serving(page_server("::1")) as server:
        assert fetch(server, "/healthz", host="::1") == Page(200, PLAIN, "running\n")


def test_port_0_takes_a_free_port() -> None:
    server = page_server(port=0)

    with serving(server), serving(page_server(port=0)) as other:
        assert 0 < server.port != other.port > 0


def test_a_port_that_is_taken_is_an_error_that_names_the_setting() -> None:
    with serving(page_server()) as server:
        second = page_server(port=server.port)
        with pytest.raises(ConfigurationError) as raised:
            second.start()

    assert str(raised.value) == (
        f"http: cannot listen on host '127.0.0.1', port {second.port}: [Errno 98] Address already in use;"
        " choose others, or port 0 for any free one"
    )


def test_it_can_be_stopped_twice_and_started_again() -> None:
    server = page_server()
    server.start()
    server.stop()
    server.stop()

    with serving(server):
        assert fetch(server, "/healthz") == Page(200, PLAIN, "running\n")


def test_after_the_stop_nobody_listens() -> None:
    server = page_server()
    server.start()
    port = server.port

    server.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
