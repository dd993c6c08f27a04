"""A layer has the same bytes for the same files, whoever made them, and when."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from tests.e2e.without_registry.layer import write_layer


def make_root(folder: Path, *, mtime: int) -> Path:
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/tool").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "usr/bin/tool").chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    for path in folder.rglob("*"):
        os.utime(path, (mtime, mtime), follow_symlinks=False)
    return folder


def test_a_layer_is_the_same_for_the_same_files_at_another_time(tmp_path: Path) -> None:
    layers = [tmp_path / "first.tar", tmp_path / "second.tar"]

    for number, layer in enumerate(layers):
        write_layer(layer, make_root(tmp_path / str(number), mtime=1_000 * number))

    assert layers[0].read_bytes() == layers[1].read_bytes()


def test_a_layer_has_all_files_in_order_as_roots_and_without_times(tmp_path: Path) -> None:
    write_layer(tmp_path / "layer.tar", make_root(tmp_path / "root", mtime=1_000))

    with tarfile.open(tmp_path / "layer.tar") as layer:
        members = [(m.name, m.type, m.mode, m.linkname) for m in layer]
        owners = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in layer}
    assert members == [
        ("bin", tarfile.SYMTYPE, 0o777, "usr/bin"),
        ("usr", tarfile.DIRTYPE, 0o755, ""),
        ("usr/bin", tarfile.DIRTYPE, 0o755, ""),
        ("usr/bin/tool", tarfile.REGTYPE, 0o755, ""),
    ]
    assert owners == {(0, 0, "", "", 0)}
