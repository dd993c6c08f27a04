"""The base of what operator and relay tell each other."""

from __future__ import annotations

from pydantic import ConfigDict

from delaytopic_api.documents.model import Model


class RelayModel(Model):
    """An immutable part of a configuration or a status.

    Each is built when it is used by itself: most are only used within others, which are built with them. Threads may
    do so at the same time, from pydantic 2.14 on.
    """

    model_config = ConfigDict(defer_build=True)
