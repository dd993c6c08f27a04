"""Edge: reads the RelayConfig document that a relay is started with."""

from __future__ import annotations

from pathlib import Path

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import load_relay_config
from delaytopic_api.relay import RelayConfig
from delaytopic_relay.errors import ConfigurationError


def read_relay_config(path: Path) -> RelayConfig:
    """The configuration in a YAML file; raises `ConfigurationError` with a line for each thing to change."""
    try:
        return load_relay_config(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, ApiError) as error:
        raise ConfigurationError(f"{error}") from error
