"""Edge: the keys of a backend, from the file that its configuration names."""

from __future__ import annotations

from pathlib import Path

from delaytopic_api.relay import RelayBackend
from delaytopic_relay.backlog.signing import SegmentSigner
from delaytopic_relay.errors import ConfigurationError

SHORTEST_KEY = 16
"""In bytes; what is shorter can be guessed."""


def signer_of(backend: RelayBackend) -> SegmentSigner:
    """Read the keys, one a line: the first signs, all verify. Raises `ConfigurationError`."""
    path = backend.signing_keys_file
    if path is None:
        return SegmentSigner()
    try:
        lines = [line.strip() for line in Path(path).read_bytes().splitlines()]
    except OSError as error:
        raise ConfigurationError(
            f"backend.signingKeysFile: {path} cannot be read ({error}); mount the Secret there"
        ) from error
    keys = [line for line in lines if line]
    if not keys or min(map(len, keys)) < SHORTEST_KEY:
        raise ConfigurationError(
            f"backend.signingKeysFile: {path} must hold one key a line, each of at least {SHORTEST_KEY} bytes; "
            "`openssl rand -base64 32` makes one"
        )
    return SegmentSigner(backend.id, keys)
