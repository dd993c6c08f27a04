"""Short digests of what a result is made from: the same text means the same result, which need not be made again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

_LENGTH = 16


def fingerprint(*parts: str | bytes) -> str:
    """Sixteen hex digits for these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:_LENGTH]


def files_fingerprint(root: Path, files: Iterable[Path]) -> str:
    """Return the fingerprint of the names below `root` and the contents of these files, in any order; what Python
    compiled is left out.
    """
    parts: list[str | bytes] = []
    for file in sorted(files):
        if "__pycache__" not in file.parts:
            parts += [file.relative_to(root).as_posix(), file.read_bytes()]
    return fingerprint(*parts)


def tree(folder: Path) -> list[Path]:
    """All files below a folder; the file itself when it is one."""
    return [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
