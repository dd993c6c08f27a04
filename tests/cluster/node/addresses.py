"""Addresses for pods: a network of this machine's loopback, which no other node has at the same time."""

from __future__ import annotations

import ipaddress
import random
import socket
from collections.abc import Iterator

_PORT = 10250  # a kubelet's: whoever listens there on a network's first address has that network
_ATTEMPTS = 100


class PodAddresses:
    """A thousand addresses, given out one after the other, until `close`; then they may be another's."""

    def __init__(self) -> None:
        """Reserve a network; raises OSError when none of many is free."""
        self._reservation, network = _reserved()
        self._free: Iterator[ipaddress.IPv4Address] = iter(list(network.hosts())[1:])

    def next(self) -> str:
        """One that no pod of this node has had; raises LookupError when there are no more."""
        for address in self._free:
            return str(address)
        raise LookupError("all addresses of this node have been given to pods")

    def close(self) -> None:
        """Give them back."""
        self._reservation.close()


def _reserved() -> tuple[socket.socket, ipaddress.IPv4Network]:
    for _ in range(_ATTEMPTS):
        network = ipaddress.IPv4Network((f"127.{random.randrange(1, 255)}.{random.randrange(256)}.0", 22), strict=False)
        reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            reservation.bind((str(network[1]), _PORT))
            reservation.listen()
        except OSError:
            reservation.close()
        else:
            return reservation, network
    raise OSError("no free network for pods on this machine's loopback")
