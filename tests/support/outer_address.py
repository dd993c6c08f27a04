"""An address of this machine that clients elsewhere could use."""

from __future__ import annotations

import socket

import pytest


def outer_address() -> str:
    """Return one that is no loopback address; skips the test where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the system only chooses the address that it would send from.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback ones")
        return str(probe.getsockname()[0])
