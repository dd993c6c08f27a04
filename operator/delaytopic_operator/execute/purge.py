"""Edge: gives up a backlog for good, step by step; every step may be repeated, and leaves what is not ours alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import redis
from redis.cluster import RedisCluster

from delaytopic_operator.errors import RedisUnavailable
from delaytopic_operator.kafka.admin import KafkaCluster
from delaytopic_operator.redis.access import opened, primaries
from delaytopic_operator.redis.credentials import RedisTarget
from delaytopic_operator.rules.purges import BacklogStep, DeleteGroup, DeleteKeys, SkipToEnd
from delaytopic_operator.topics.actions import DeleteTopic

SCAN_COUNT: Final = 1_000
"""Keys that Redis looks at for one answer: some 0.3 ms of its one thread."""
_SPECIAL: Final = re.compile(r"([*?\[\]\\])")

Going = Callable[[], object]
"""Asked before each request; raises what ends the purge."""
Together = Callable[[Sequence[bytes]], list[Sequence[bytes]]]
"""The keys that may go in one command."""


def do_purge_step(step: BacklogStep, cluster: KafkaCluster, target: RedisTarget | None, going: Going) -> int:
    """Do it; how many topics, keys or groups went. Raises errors of the operator's tree, to be repeated later.

    `target` is needed where Redis keys go.
    """
    match step:
        case DeleteKeys(backend_id):
            if target is None:
                raise RedisUnavailable(f"the keys of {backend_id} cannot be deleted: it is not known where Redis is")
            return delete_keys(target, backend_id, going)
        case DeleteGroup(group_id):
            return int(cluster.delete_group(group_id))
        case SkipToEnd(group_id, topic):
            return int(cluster.skip_to_end(group_id, topic))
        case DeleteTopic():
            return int(cluster.perform(step))


def delete_keys(target: RedisTarget, backend_id: str, going: Going) -> int:
    """Delete every key of a backend id, in batches; how many there were.

    Raises `RedisUnavailable`, `RedisNotAuthenticated`, and what `going` raises.
    """
    with opened(target) as client:
        together = _by_tag if isinstance(client, RedisCluster) else _all_at_once
        pattern = _pattern(backend_id)
        return sum(_delete_of(server, pattern, together, going) for _, server in primaries(client, target))


def _delete_of(server: redis.Redis, pattern: str, together: Together, going: Going) -> int:
    gone = cursor = 0
    while True:
        going()
        answer: Any = server.scan(cursor, match=pattern, count=SCAN_COUNT)
        cursor, keys = answer
        for batch in together(keys):
            going()
            gone += int(server.unlink(*batch))
        if cursor == 0:
            return gone


def _pattern(backend_id: str) -> str:
    """The hash tag of any shard; the colon keeps away from ids that begin alike."""
    return "{" + _SPECIAL.sub(r"\\\1", backend_id) + ":*"


def _all_at_once(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [keys] if keys else []


def _by_tag(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Of a cluster: only keys of one shard, which share a hash tag, may go in one command."""
    tagged: dict[bytes, list[bytes]] = defaultdict(list)
    for key in keys:
        tagged[key.partition(b"}")[0]].append(key)
    return list(tagged.values())
