"""TLS for tests: certificates made by openssl, and a terminator in front of a server that has no TLS of its own."""

from __future__ import annotations

import select
import socket
import socketserver
import ssl
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

READ_BYTES = 1 << 16  # more than a TLS record, so that nothing is left pending behind a read


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: an authority, a server for 127.0.0.1 (and no other name), and a client."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def make_certificates(directory: Path) -> Certificates:
    """New ones, valid for a day."""
    authority, authority_key = directory / "ca.pem", directory / "ca.key"
    _openssl(authority, authority_key, "/CN=test authority", "basicConstraints=critical,CA:TRUE")
    signed = "-CA", str(authority), "-CAkey", str(authority_key)
    server, server_key = directory / "server.pem", directory / "server.key"
    _openssl(server, server_key, "/CN=redis", "subjectAltName=IP:127.0.0.1", *signed)
    client, client_key = directory / "client.pem", directory / "client.key"
    _openssl(client, client_key, "/CN=relay", "basicConstraints=CA:FALSE", *signed)
    return Certificates(authority, server, server_key, client, client_key)


def _openssl(certificate: Path, key: Path, subject: str, extension: str, *signed: str) -> None:
    new_key = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key)
    form = "-x509", "-days", "1", "-subj", subject, "-addext", extension, "-out", str(certificate)
    subprocess.run(["openssl", "req", *new_key, *form, *signed], check=True, capture_output=True)


class TlsTerminator:
    """Takes TLS connections on `port`, and hands what they carry to a port of 127.0.0.1 in the clear."""

    def __init__(self, certificates: Certificates, port_behind: int, *, ask_for_client: bool = False) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.server_key)
        if ask_for_client:
            context.load_verify_locations(certificates.authority)
            context.verify_mode = ssl.CERT_REQUIRED

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    with (
                        context.wrap_socket(self.request, server_side=True) as outside,
                        socket.create_connection(("127.0.0.1", port_behind)) as inside,
                    ):
                        _carry(outside, inside)
                except OSError:
                    return  # a refused handshake or a broken connection: the client is told by its end

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; clients must have closed their connections before."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Until one of them ends."""
    while True:
        for ready in select.select([one, other], [], [])[0]:
            data = ready.recv(READ_BYTES)
            if not data:
                return
            (other if ready is one else one).sendall(data)
