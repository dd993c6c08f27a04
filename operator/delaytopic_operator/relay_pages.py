"""Edge: reads what relays say of themselves, GET /status of each pod, in parallel, within a deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic
from typing import Any, Final

import urllib3
from pydantic import ValidationError
from urllib3.exceptions import HTTPError

from delaytopic_api import RelayStatus
from delaytopic_operator.fleet import RelayPage

DEFAULT_PORT: Final = 8080
LARGEST_PAGE_BYTES: Final = 8 * 1024 * 1024
SHORTEST_WAIT_SECONDS: Final = 0.05

Document = dict[str, Any]


class RelayPages:
    """Thread-safe; all passes share the connections."""

    def __init__(self, at_once: int = 32) -> None:
        """`at_once` pages are read at the same time; others wait."""
        self._connections = urllib3.PoolManager(retries=False)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="relay-pages")

    def read(self, pods: Sequence[Document], deadline_s: float) -> list[RelayPage]:
        """The page of each pod, in their order; never raises, and answers within the deadline."""
        ends = monotonic() + deadline_s
        addresses = [(pod["metadata"]["name"], page_address(pod)) for pod in pods]
        reads = [
            self._threads.submit(self._page, name, address, ends) if address is not None else None
            for name, address in addresses
        ]
        wait([read for read in reads if read is not None], max(0.0, ends - monotonic()))
        pages = []
        for (name, _), read in zip(addresses, reads, strict=True):
            if read is None:
                pages.append(RelayPage(name, None, "has no address yet"))
            elif read.done():
                pages.append(read.result())
            else:
                read.cancel()
                pages.append(RelayPage(name, None, f"did not answer within {deadline_s:g} s"))
        return pages

    def close(self) -> None:
        """Read no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.clear()

    def _page(self, name: str, address: str, ends: float) -> RelayPage:
        try:
            return RelayPage(name, self._read(address, max(SHORTEST_WAIT_SECONDS, ends - monotonic())), None)
        except HTTPError as error:
            return RelayPage(name, None, f"cannot be reached at {address}: {type(error).__name__}")
        except ValidationError as error:
            return RelayPage(
                name, None, f"answers something else than a relay's status ({error.error_count()} problems)"
            )
        except ValueError as error:
            return RelayPage(name, None, str(error))

    def _read(self, address: str, deadline_s: float) -> RelayStatus:
        response = self._connections.request(
            "GET", f"{address}/status", timeout=urllib3.Timeout(total=deadline_s), preload_content=False
        )
        try:
            data = response.read(LARGEST_PAGE_BYTES)
            whole = response.read(1) == b""
        finally:
            response.close()
        if response.status != 200:
            raise ValueError(f"answers {response.status}")
        if not whole:
            raise ValueError(f"answers with more than {LARGEST_PAGE_BYTES} bytes")
        return RelayStatus.model_validate_json(data, by_alias=True, by_name=False)


def page_address(pod: Mapping[str, Any]) -> str | None:
    """`http://10.1.2.3:8080` of a pod that has an address and is not ended; else None."""
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or status.get("phase") in {"Succeeded", "Failed"}:
        return None
    ports = [port for container in pod["spec"].get("containers", []) for port in container.get("ports") or []]
    port = next((port["containerPort"] for port in ports if port.get("name") == "http"), DEFAULT_PORT)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
