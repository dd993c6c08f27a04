"""An issuer of OAuth tokens for tests: JWTs by the grant client_credentials over HTTPS, and their keys over HTTP.

Tokens are signed by openssl, with RS256.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs

from tests.support.servers.tls import Certificates

CLIENT_ID: Final = "delay-relay"
CLIENT_SECRET: Final = "client-secret-in-a-file"
BROKERS: Final = "kafka"
_KEY_ID: Final = "k1"
_JSON: Final = "application/json"


@dataclass(frozen=True)
class Answer:
    """Response of the token endpoint in place of a token."""

    status: int
    body: str
    content_type: str = _JSON


@dataclass
class Issuer:
    """Serves `/token` to the one client that it knows, and `/jwks` to everybody. As a context manager it runs."""

    directory: Path
    certificates: Certificates
    lifetime_s: float = 3_600
    """The lifetime of the tokens that it gives from now on."""
    audience: str = BROKERS
    """The audience of the tokens that it gives from now on."""
    answer: Answer | None = None
    """The answer that everybody gets in place of a token while it is set."""
    unheard: int = 0
    """The number of requests that it answered."""
    scopes: list[str | None] = field(default_factory=list)
    """The scopes asked for with each token that was given, in order."""

    @property
    def name(self) -> str:
        """The claim `iss`."""
        return "https://issuer.test"

    @property
    def token_url(self) -> str:
        """The address of HTTPS, with the server's certificate."""
        return f"https://127.0.0.1:{self._tokens.server_port}/token"

    @property
    def jwks_url(self) -> str:
        """The keys that verify tokens."""
        return f"http://127.0.0.1:{self._keys.server_port}/jwks"

    def __enter__(self) -> Self:
        self._key = self.directory / "issuer.key"
        _openssl("genrsa", "-out", str(self._key), "2048")
        self._keys = _server(self)
        self._tokens = _server(self)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.server, self.certificates.server_key)
        # The handshake is the reader's, in the thread of the request: a client that fails it stops nobody else.
        self._tokens.socket = context.wrap_socket(self._tokens.socket, server_side=True, do_handshake_on_connect=False)
        self._threads = [
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            for server in (self._keys, self._tokens)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server, thread in zip((self._keys, self._tokens), self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()

    def respond(self, authorization: str, form: dict[str, list[str]]) -> Answer:
        """Return what a client gets that asks for a token."""
        if self.answer is not None:
            self.unheard += 1
            return self.answer
        known = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {known}":
            said = {"error": "invalid_client", "error_description": "Invalid client or Invalid client credentials"}
            return Answer(401, json.dumps(said))
        if form.get("grant_type") != ["client_credentials"]:
            return Answer(400, json.dumps({"error": "unsupported_grant_type"}))
        scope = form.get("scope", [None])[0]
        token = self.token(scope)
        self.scopes.append(scope)
        return Answer(200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_s}))

    def token(self, scope: str | None = None) -> str:
        """Return a token of the client."""
        now_s = time.time()
        claims = {
            "iss": self.name,
            "sub": CLIENT_ID,
            "aud": self.audience,
            "iat": now_s,
            "exp": now_s + self.lifetime_s,
            "jti": str(uuid.uuid4()),
            **({"scope": scope} if scope is not None else {}),
        }
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": _KEY_ID}, claims))
        signature = _openssl("dgst", "-sha256", "-sign", str(self._key), read=signed.encode())
        return f"{signed}.{_encoded(signature)}"

    def keys(self) -> str:
        """Return the key set that verifies its tokens."""
        modulus = _openssl("rsa", "-in", str(self._key), "-noout", "-modulus").decode().strip().partition("=")[2]
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": _KEY_ID,
            "n": _encoded(bytes.fromhex(modulus)),
            "e": _encoded((65_537).to_bytes(3, "big")),
        }
        return json.dumps({"keys": [key]})


def _server(issuer: Issuer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._say(issuer.respond(self.headers.get("Authorization", ""), parse_qs(body)))

        def do_GET(self) -> None:
            self._say(Answer(200, issuer.keys()))

        def _say(self, answer: Answer) -> None:
            body = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: what was asked for, tests ask the issuer."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Say nothing of clients that do not trust the certificate."""

    return Server(("127.0.0.1", 0), Handler)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _openssl(*arguments: str, read: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=read, check=True, capture_output=True).stdout
