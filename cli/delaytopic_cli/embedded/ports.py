"""Choosing TCP ports for servers that must come back on the same port after a restart."""

from __future__ import annotations

import random
import socket

from delaytopic_cli.errors import EmbeddedServerError

# Below the ephemeral ranges of Linux (32768) and IANA (49152): no outgoing connection of this machine can take the
# port while its server is down between a stop and a restart.
_RANGE = range(20000, 32000)
_ATTEMPTS = 200


def free_port(*, avoid: frozenset[int] = frozenset()) -> int:
    """A port on 127.0.0.1 that nobody listens on now and that no outgoing connection is given.

    Raises EmbeddedServerError when none of many candidates is free.
    """
    for port in random.sample(_RANGE, _ATTEMPTS):
        if port not in avoid and _is_free(port):
            return port
    raise EmbeddedServerError(
        f"no free TCP port found on 127.0.0.1 between {_RANGE.start} and {_RANGE.stop}; "
        "end some local servers and try again"
    )


def accepts_connections(port: int) -> bool:
    """Whether something listens on 127.0.0.1:`port`."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return True
    except OSError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
