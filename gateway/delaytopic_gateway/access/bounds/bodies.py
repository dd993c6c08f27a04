"""The bodies of requests: how much of them is read, by whom, for how long, and of what form they may be."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from delaytopic_gateway.access.bounds.shares import Shares

MOST_BYTES: Final = 2 << 20
"""The bound of a body; a record is smaller."""
MOST_AT_ONCE: Final = 4 << 20
"""The bound of all that are read or answered; of one caller as much as one has. A byte of text takes up to eleven in
memory."""
DEADLINE_S: Final = 20.0
"""The longest time that a body may take to arrive."""
MOST_QUOTES: Final = 10_000
MOST_STRUCTURE: Final = 64 << 10
"""Bytes of JSON beside texts. Of these one takes up to 25 in memory, and more when it is refused."""
_TEXTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class Refused(Exception):
    """A body that is not taken."""

    def __init__(self, status: int, text: str) -> None:
        """`status` is that of the answer."""
        super().__init__(text)
        self.status = status


class Body:
    """The body of one request, as far as it has come."""

    def __init__(self, headers: Headers, receive: Receive) -> None:
        """`receive` is that of ASGI."""
        self._receive = receive
        self.ended = "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
        """True if no more of it comes."""

    async def receive(self) -> Message:
        """Return the next message."""
        message = await self._receive()
        self.ended = self.ended or message["type"] != "http.request" or not message.get("more_body", False)
        return message


class Bodies:
    """The bodies of a gateway that are in memory. For one event loop."""

    def __init__(self) -> None:
        """Begins with none."""
        self._shares = Shares(MOST_AT_ONCE, MOST_BYTES)
        self.bytes = 0
        """The bytes of all of them."""

    async def read(self, owner: str, receive: Receive) -> bytes:
        """Return a whole body, whose bytes count until `forget`. Raises `Refused`.

        It is counted as it comes: what the headers say of its length may not be so.
        """
        read = bytearray()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refused(400, "the body ended early")
                    part = message.get("body", b"")
                    self._take(owner, len(read), len(part))
                    read += part
                    if not message.get("more_body", False):
                        return bytes(read)
        except TimeoutError:
            self.forget(owner, len(read))
            raise Refused(408, f"a body may take {DEADLINE_S:.0f} s") from None
        except BaseException:
            self.forget(owner, len(read))
            raise

    def forget(self, owner: str, size: int) -> None:
        """Count so many bytes no more."""
        if size:
            self._shares.give(owner, size)

    def _take(self, owner: str, before: int, more: int) -> None:
        if before + more > MOST_BYTES:
            raise Refused(413, f"a body may have {MOST_BYTES} bytes")
        if more and not self._shares.take(owner, more):
            raise Refused(503, "the bodies of other requests are being read; ask again in a moment")


def demand_simple(document: bytes) -> None:
    """Raise `Refused` for JSON that would take far more memory than it has bytes: it consists of anything but texts.

    Pure. Quotes are counted first, as each costs the second look something.
    """
    if b"\0" in document:
        raise Refused(400, "the body is no JSON in UTF-8")
    quotes = document.count(b'"') - document.count(b'\\"')
    if quotes > MOST_QUOTES or len(_TEXTS.sub(b"", document)) > MOST_STRUCTURE:
        raise Refused(413, f"the body has too many parts: it may have {MOST_STRUCTURE} bytes beside texts")
