"""The images of the project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.places import IMAGES

DEFAULT_BASE: Final = "python:3.11-slim"
PYTHON: Final = "3.11"
"""The version of Python of the base, which wheels are chosen for."""
SBOM_FILE: Final = "/opt/delaytopic/sbom.cdx.json"
"""The file in each image that says what is installed in it, as CycloneDX JSON."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its name, the extra of pyproject.toml that it is made of, and its repository as in the chart."""

    name: str
    extra: str
    repository: str
    has_jars: bool = False
    """True: with the jars that Spark does not bring."""
    takes_speedups: bool = False
    """True: with the relay's extension, if a build asks for it."""

    @property
    def dockerfile(self) -> Path:
        """Return the file that it is built by."""
        return IMAGES / f"{self.name}.Dockerfile"


IMAGE_LIST: Final = (
    Image("relay", extra="relay", repository="delaytopic/relay", takes_speedups=True),
    Image("operator", extra="operator", repository="delaytopic/operator"),
    Image("gateway", extra="gateway", repository="delaytopic/gateway"),
    Image("audit", extra="audit", repository="delaytopic/audit", has_jars=True),
)
"""All images, in the order in which they are built."""
