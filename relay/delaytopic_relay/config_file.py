"""Edge: reads the RelayConfig document that a relay is started with."""

from __future__ import annotations

from pathlib import Path

import yaml
from delaytopic_api.errors import InvalidDocument
from delaytopic_api.problems import problems_of
from delaytopic_api.relay_config import RelayConfig
from pydantic import ValidationError

from delaytopic_relay.errors import ConfigurationError


def load_relay_config(path: Path) -> RelayConfig:
    """The configuration in a YAML file; raises `ConfigurationError` with a line for each thing to change."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        return RelayConfig.model_validate(document)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        raise ConfigurationError(str(InvalidDocument(problems_of(error, RelayConfig, str(path))))) from error
