"""Reading documents from YAML and JSON, with a problem for each field that is wrong."""

from __future__ import annotations

from delaytopic_api.loading.documents import (
    AnyDocument,
    dump_yaml,
    expand_list,
    load_document,
    load_relay_config,
    validate,
)
from delaytopic_api.loading.yaml_text import ManifestDumper, parse_yaml, write_yaml

__all__ = [
    "AnyDocument",
    "ManifestDumper",
    "dump_yaml",
    "expand_list",
    "load_document",
    "load_relay_config",
    "parse_yaml",
    "validate",
    "write_yaml",
]
