"""A click group that imports a subcommand when it is called, so that `delaytopic --version` needs no Kafka client."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are named as `module:attribute`."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, str], **kwargs: Any) -> None:
        """`lazy_commands` maps the command's name to where it is."""
        super().__init__(*args, **kwargs)
        self._lazy_commands = dict(lazy_commands)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were named: the order in which one uses them."""
        return list(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or None for an unknown name."""
        place = self._lazy_commands.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command
