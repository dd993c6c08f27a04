"""The bill of materials of an image from its locks, as CycloneDX: it needs no engine, and names the jars, too. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from images.tools.catalogue import Image
from images.tools.jars import locked_jars
from images.tools.locking import lock_file
from images.tools.places import ROOT

SPEC_VERSION: Final = "1.6"
_PIN: Final = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)

Component = dict[str, Any]


def bill_of_materials(image: Image, version: str, root: Path = ROOT) -> str:
    """Return the document: the project itself, and what the locks of the checkout `root` have for the image.

    The same locks and version give the same document. Packages of the base are not in it.
    """
    whole: Component = {
        "type": "container",
        "bom-ref": image.repository,
        "name": image.repository,
        "version": version,
    }
    project = _component("pypi", "delaytopic", version)
    parts = [project, *_distributions(image, root), *(_jars(root) if image.has_jars else ())]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": whole},
        "components": parts,
        "dependencies": [{"ref": image.repository, "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(document))
    return json.dumps({**document, "serialNumber": f"urn:uuid:{serial}"}, indent=2) + "\n"


def _distributions(image: Image, root: Path) -> Iterator[Component]:
    """Each with the digests of all its files that a build takes: one for each kind of machine."""
    for name, version, hashes in _PIN.findall(lock_file(image.name, root=root).read_text(encoding="utf-8")):
        yield _component("pypi", name, version, *re.findall("[0-9a-f]{64}", hashes))


def _jars(root: Path) -> Iterator[Component]:
    for jar in locked_jars(root):
        yield {**_component("maven", f"{jar.group}/{jar.name}", jar.version, jar.digest), "group": jar.group}


def _component(kind: str, name: str, version: str, *digests: str) -> Component:
    purl = f"pkg:{kind}/{name}@{version}"
    hashes = {"hashes": [{"alg": "SHA-256", "content": digest} for digest in digests]} if digests else {}
    named = {"name": name.rpartition("/")[2], "version": version, "purl": purl}
    return {"type": "library", "bom-ref": purl, **named, **hashes}
