"""Makes folders that hold a small Debian: the root of an image."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from images.tools.go_builds import Report
from playground.cluster.commands import run
from playground.without_registry import debian

# containerd 1.6, runc 1.1 and the CNI plugins of this release run the node, whatever the release of the host.
SUITE: Final = "bookworm"
_LEFT_OUT = ("doc", "info", "locale", "man")
_SECONDS = 1800.0

Variant = Literal["essential", "extract"]


def make_root(root: Path, packages: Sequence[str], variant: Variant, report: Report) -> None:
    """A root with these packages: `essential` is an installed system, `extract` is only what is in the packages."""
    if shutil.which("mmdebstrap") is None:
        report("installing mmdebstrap from the distribution ...")
        debian.install("mmdebstrap", "debian-archive-keyring")
    run("mmdebstrap", *_options(packages, variant), SUITE, root, seconds=_SECONDS)


def write_layer(root: Path, layer: Path) -> None:
    """The root as the tar file that a layer of an image is, without devices, which a container brings itself."""
    excluded = ("./dev/*", "./proc/*", "./run/*", "./sys/*", "./tmp/*")
    options = ["--sort=name", "--mtime=@0", "--numeric-owner", *(f"--exclude={pattern}" for pattern in excluded)]
    run("tar", "--create", f"--file={layer}", f"--directory={root}", *options, ".", seconds=_SECONDS)


def _options(packages: Sequence[str], variant: Variant) -> list[str]:
    options = [f"--variant={variant}", f"--include={','.join(packages)}", "--quiet"]
    options += ["--aptopt=APT::Install-Recommends false", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    return options + [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
