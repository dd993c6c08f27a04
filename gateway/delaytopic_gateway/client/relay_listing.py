"""Edge: asking relays for what is pending, over HTTP."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urlsplit

from delaytopic_api.relay import PendingList, RelayStatus
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_process.errors import InputError

TIMEOUT_SECONDS = 20.0
"""A relay may wait for its tick, and then reads its backlog."""
STATUS_TIMEOUT_SECONDS = 2.0
MOST_AT_A_TIME = 8
LONGEST_ANSWER_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class RelayAnswer:
    """The answer of a relay: its list, or the reason why there is none."""

    url: str
    document: PendingList | None = None
    problem: str | None = None


def relay_url(text: str) -> str:
    """Return the address of a relay's pages; `http://` may be left out. Raises InputError."""
    url = text if "://" in text else f"http://{text}"
    if not _is_usable(url):
        raise InputError(f'--relay takes the address of a relay\'s pages, such as http://10.0.0.7:8080, not "{text}"')
    return url.rstrip("/")


def _is_usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    place = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return place and not (parts.query or parts.fragment or parts.username)


def ask_relays(urls: Iterable[str], parameters: Mapping[str, int | str], token: str | None = None) -> list[RelayAnswer]:
    """Ask all at the same time; the answers come in the order of the addresses.

    `token` is for the relays of a cluster; with it, no proxy of the environment is asked.
    """
    with ThreadPoolExecutor(MOST_AT_A_TIME) as threads:
        return list(threads.map(lambda url: ask_relay(url, parameters, token), urls))


def ask_relay(url: str, parameters: Mapping[str, int | str], token: str | None = None) -> RelayAnswer:
    """Return the answer of the relay at this address, and of no other one."""
    request = urllib.request.Request(f"{url}/pending?{urlencode(parameters)}")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with opener_for(url, direct=token is not None).open(request, timeout=TIMEOUT_SECONDS) as answer:
            return RelayAnswer(url, PendingList.model_validate_json(answer.read(LONGEST_ANSWER_BYTES)))
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(1_000).decode("utf-8", "replace")
        return RelayAnswer(url, problem=f"answered {error.code}: {printable_line(said)}")
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return RelayAnswer(url, problem=f"does not answer: {printable_line(str(reason)) or type(reason).__name__}")
    except ValueError:
        return RelayAnswer(
            url, problem="answered with something else than a list of what is pending: no relay's address?"
        )


def relay_status(url: str) -> RelayStatus:
    """Return the status of the relay at this address, counted once a second. Raises `RelayUnreachableError`."""
    try:
        with opener_for(url).open(f"{url}/status", timeout=STATUS_TIMEOUT_SECONDS) as answer:
            return RelayStatus.model_validate_json(answer.read(LONGEST_ANSWER_BYTES))
    except (OSError, http.client.HTTPException, ValueError) as error:
        said = printable_line(str(error)) or type(error).__name__
        raise RelayUnreachableError(f"the relay at {url} does not tell its status: {said}") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer: a relay sends nobody elsewhere, and a forged one might send anywhere."""

    def redirect_request(self, *arguments: Any) -> None:
        """Return no further request."""


def opener_for(url: str, *, direct: bool = False) -> urllib.request.OpenerDirector:
    """Return what opens the address: a proxy of the environment would take a loopback address for its own.

    With `direct`, none is asked for any address.
    """
    if direct or _is_loopback(urlsplit(url).hostname or ""):
        return urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(_NoRedirects)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def printable_line(text: str) -> str:
    """Return a text of somebody else in one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in text).strip()
