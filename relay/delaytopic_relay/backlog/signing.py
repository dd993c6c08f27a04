"""The MAC of segments, by which a relay knows what relays of its backend wrote. Pure.

A signed segment is MAGIC, the first 16 bytes of its HMAC-SHA-256, and the segment as it is without a key. The MAC also
covers the place: partition, and slice or bucket; its key is derived for one backend. So a segment is worth nothing
elsewhere. A segment of a version after the first always has MAGIC in front (with a tag of zeros where there is no key),
whatever follows it.

In a slice, whose segments have no numbers, a signed one begins with the mark of its put, which the MAC covers, too. So
no two segments of a slice have the same MAC, unless somebody has made a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from hmac import compare_digest, digest
from pathlib import Path

from delaytopic_api.relay import RelayBackend
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.errors import ConfigurationError, ForeignRecord

MAGIC = b"\xc1DTS"
"""No msgpack value begins with its first byte, and no version has that number."""
TAG_BYTES = 16
MARK_BYTES = 8
_HEAD_BYTES = len(MAGIC) + TAG_BYTES
FIRST_VERSION = b"\x01"


def slice_place(partition: int, slice_: Slice) -> bytes:
    """Name the slice of a shard for its segments' tags."""
    return b"slice:%d:%d:%d;" % (partition, *slice_)


def bucket_place(partition: int, bucket: int) -> bytes:
    """Name the bucket of a shard for its segments' tags."""
    return b"bucket:%d:%d;" % (partition, bucket)


def mark_of(put: StoreVersion) -> bytes:
    """Return the mark of the put that leads to a version of the backlog: no other does."""
    return blake2b(f"{put.counter}:{put.owner}".encode(), digest_size=MARK_BYTES).digest()


class SegmentSigner:
    """Signs with the first key of a backend, and verifies with each; without a key it signs nothing, and trusts."""

    def __init__(self, backend_id: str = "", keys: Sequence[bytes] = ()) -> None:
        """`keys` are secrets of any length; what signs is derived from them for this backend alone."""
        self._keys = [digest(key, b"delaytopic segments of " + backend_id.encode(), "sha256") for key in keys]
        self._key_ids = [f"~{digest(key, b'mark', 'sha256')[:4].hex()}" for key in self._keys]

    @property
    def key_id(self) -> str:
        """Names the key that signs, for those who look whether they have it; "" without one. It proves nothing."""
        return self._key_ids[0] if self._key_ids else ""

    def knows(self, text: str) -> bool:
        """Tell whether a text names a key that is here, by its mark; without keys every text will do."""
        return not self._key_ids or any(key_id in text for key_id in self._key_ids)

    def sign(self, place: bytes, data: bytes, mark: bytes = b"") -> bytes:
        """Put MAGIC, the tag and the mark in front of a segment."""
        if not self._keys:
            return data
        marked = mark + data
        return b"".join((MAGIC, _tag(self._keys[0], place, marked), marked))

    def tag_of(self, data: bytes) -> bytes | None:
        """Return the tag of a segment that was verified; None where nothing is signed, and any could be forged."""
        return data[len(MAGIC) : _HEAD_BYTES] if self._keys else None

    def verify(self, place: bytes, data: bytes | None, mark_bytes: int = 0) -> bytes:
        """Return the segment without its tag, and without a mark of so many bytes.

        Raises `ForeignRecord` for what none of the keys has signed.
        """
        if not data:
            raise ForeignRecord("it is empty")
        if not data.startswith(MAGIC):
            if data.startswith(FIRST_VERSION) and not self._keys:
                return data
            raise ForeignRecord(
                "it is not signed"
                if data.startswith(FIRST_VERSION)
                else f"it starts with byte {data[0]:#04x}, which no segment does"
            )
        tag, segment = data[len(MAGIC) : _HEAD_BYTES], data[_HEAD_BYTES:]
        if len(segment) <= mark_bytes:
            raise ForeignRecord("it is too short for a segment")
        if self._keys and not any(compare_digest(tag, _tag(key, place, segment)) for key in self._keys):
            raise ForeignRecord("no key of this backend has signed it, or not for this place")
        return segment[mark_bytes:]


UNSIGNED = SegmentSigner()


def _tag(key: bytes, place: bytes, data: bytes) -> bytes:
    # In one call: where processors help with SHA-256 this takes half of what keyed BLAKE2b does.
    return digest(key, place + data, "sha256")[:TAG_BYTES]


SHORTEST_KEY = 16
"""The length in bytes below which a key can be guessed."""


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
