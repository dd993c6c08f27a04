"""The topic that a record asks to be delivered to."""

from __future__ import annotations

import re
from collections.abc import Mapping

from delaytopic_api.records import DELIVER_TO, DeadLetterReason
from delaytopic_relay.dialects.header_error import HeaderError, malformed
from delaytopic_relay.dialects.policy import NativePolicy

_TOPIC_NAME = re.compile(rb"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")


def target_of(policy: NativePolicy, controls: Mapping[str, bytes | None]) -> str | None:
    """The topic that `deliver-to` names; None without the header. Raises `HeaderError`."""
    if DELIVER_TO not in controls:
        return None
    name = controls[DELIVER_TO]
    if name is None or not _TOPIC_NAME.fullmatch(name):
        raise malformed(DELIVER_TO, "a topic name of 1 to 249 letters, digits, dots, underscores or hyphens", name)
    topic = name.decode("ascii")
    if topic == policy.target_topic or policy.target_allowed(topic):
        return topic
    allowed = ", ".join((policy.target_topic, *policy.target_allowed.globs))
    detail = f"header {DELIVER_TO} names topic {topic}, but this DelayTopic allows {allowed} (target.allowed)"
    raise HeaderError(DeadLetterReason.FORBIDDEN_TARGET, detail)
