"""The topics that records may name as their targets."""

from __future__ import annotations

from collections.abc import Sequence

from delaytopic_api.values import is_reserved
from delaytopic_relay.dialects.reading import TopicGlobs


class FurtherTargets:
    """The topics that a schedule may name instead of the target.

    Dialects ask the same globs when a record is read. What comes from a backlog is asked again when it is sent: the
    globs may be others by now, and who can write to a backlog can name any topic in it.
    """

    def __init__(self, globs: Sequence[str], backend_id: str) -> None:
        """`globs` as in `target.allowedTopics`; `backend_id` begins the names of the relay's own bucket topics."""
        self._allowed = TopicGlobs(globs)
        self._own = f"{backend_id}.delay."

    def objection(self, topic: str, target: str) -> str | None:
        """Return why nothing may be sent to a topic; None if something may. `target` is always allowed."""
        if topic == target:
            return None
        if topic.startswith(self._own) or is_reserved(topic):
            return f"it asks for topic {topic}, which belongs to Kafka or to a relay"
        if not self._allowed(topic):
            allowed = ", ".join((target, *self._allowed.globs))
            return f"it asks for topic {topic[:249]}, but this DelayTopic now allows {allowed} (target.allowedTopics)"
        return None
