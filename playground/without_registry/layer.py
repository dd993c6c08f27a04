"""The layer of an image: a tar archive, the same bytes for the same folder."""

from __future__ import annotations

import tarfile
from pathlib import Path


def write_layer(layer: Path, root: Path) -> None:
    """All that is below `root`, as root's and without times."""
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            archive.add(path, arcname=path.relative_to(root).as_posix(), recursive=False, filter=_settled)


def _settled(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
