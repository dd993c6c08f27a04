"""Names of relays, by which a new owner knows whom it may fence. Pure."""

from __future__ import annotations

import re

_INSTANCE = re.compile(r"[^/]{1,255}-[0-9]{1,10}-[0-9a-f]{8}")
"""Host, process and a random part, as `Service` names a relay."""


def transactional_id(group_id: str, instance: str) -> str:
    """Name the producer of one relay, beginning with its group."""
    return f"{group_id}/{instance}"


def is_of_group(owner: str, group_id: str) -> bool:
    """Tell whether a `transactional.id` has the exact form of a relay of this group.

    An instance has no slash, so that no id of another group has this form, whatever the groups are called.
    """
    return owner.startswith(f"{group_id}/") and _INSTANCE.fullmatch(owner, len(group_id) + 1) is not None
