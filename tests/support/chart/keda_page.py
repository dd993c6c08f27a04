"""The documents on the page about KEDA."""

from __future__ import annotations

import re
from typing import Any

import yaml
from charts.tools.places import DOCS, text_of

PAGE = DOCS / "how-to/keda.md"
DOCUMENTS: list[dict[str, Any]] = [
    document
    for block in re.findall(r"^```yaml\n(.*?)^```$", text_of(PAGE), re.DOTALL | re.MULTILINE)
    for document in yaml.safe_load_all(block)
]
SCALED = [document for document in DOCUMENTS if document["kind"] == "ScaledObject"]
