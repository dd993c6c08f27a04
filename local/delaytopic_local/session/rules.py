"""DelayTopics of one file that cannot go together, by the operator's own rules. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from delaytopic_api import Settings
from delaytopic_operator.offline import conflicts_among
from delaytopic_process.errors import InputError


def check_together(all_settings: Sequence[Settings]) -> None:
    """Raise InputError, with a line for each DelayTopic that the operator would refuse beside those before it."""
    refused = conflicts_among(all_settings)
    if refused:
        raise InputError("\n".join(f"DelayTopic {key}: {conflict.sentence}" for key, conflict in refused.items()))
