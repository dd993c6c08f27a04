"""Tests of the sockets that connections to Redis have."""

from __future__ import annotations

import gc
from socket import socketpair

from delaytopic_relay.backlog.redis.connection import BoundedSocket


class Client:
    """One that is garbage only together with its connection, as a cluster's is."""

    def __init__(self, connection: BoundedSocket) -> None:
        self.connection, self.itself = connection, self


def test_a_socket_whose_client_has_dropped_it_unclosed_is_closed_with_it() -> None:
    ours, servers = socketpair()
    client = Client(BoundedSocket(ours, 1))

    del ours, client
    gc.collect()  # it would warn of a socket that is open, which fails a test

    assert servers.recv(1) == b""
    servers.close()
