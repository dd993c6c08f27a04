"""Edge: reads the OperatorConfig document that the operator is started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import parse_yaml, validate
from delaytopic_operator.config.operator_config import OperatorConfig
from delaytopic_operator.errors import ConfigurationError


def read_operator_config(path: Path) -> OperatorConfig:
    """The configuration in a YAML file; raises `ConfigurationError` with a line for each thing to change."""
    try:
        contents = [
            content for content in parse_yaml(path.read_text(encoding="utf-8"), str(path)) if content is not None
        ]
        if len(contents) != 1:
            raise ConfigurationError(f"{path}: must hold one OperatorConfig, not {len(contents)} documents")
        if not isinstance(contents[0], Mapping) or contents[0].get("kind") != "OperatorConfig":
            raise ConfigurationError(f"{path}: kind: must be OperatorConfig")
        return validate(OperatorConfig, contents[0], str(path))
    except (OSError, UnicodeDecodeError, ApiError) as error:
        raise ConfigurationError(f"{error}") from error
