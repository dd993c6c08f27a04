"""A backlog that is given up goes, all of it; what belongs to others stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis
from redis.cluster import RedisCluster
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.kafka_help import commit, made, produce, wait_for
from tests.support.operator.topic_scenes import NAMESPACE_UID, wanted

from delaytopic_api.documents import Ownership
from delaytopic_api.values import BackendType
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_operator.errors import NotLeading, RedisUnavailable
from delaytopic_operator.execute.topics import delete_keys, do_purge_step
from delaytopic_operator.kafka.admin import KafkaCluster
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord, begin_record
from delaytopic_operator.redis.client import RedisTarget
from delaytopic_operator.rules.purges import BacklogStep, DeleteGroup, DeleteKeys, DeleteObject, SkipToEnd, purge_steps
from delaytopic_operator.topics.actions import DeleteTopic
from delaytopic_operator.topics.strimzi import StrimziPlace, StrimziTopics

SUFFIXES = (".delayed", "", ".dlq", ".history", ".outcomes", ".delay.0")
KINDS = (b"position", b"slices", b"counts", b"ids", b"s:0:1000")


def recorded(
    name: str, source: Ownership = Ownership.CREATED, backend: BackendType = BackendType.REDIS_ZSET
) -> RouteRecord:
    """A route whose topics have ids as `name` says, with one bucket topic."""

    def topic(suffix: str, ownership: Ownership) -> TopicRecord:
        return TopicRecord(name=f"{name}{suffix}", ownership=ownership, topic_id=f"id{suffix}")

    record = begin_record(wanted().settings, NAMESPACE_UID).model_copy(
        update={"group_id": f"group.{name}", "backend_id": f"delaytopic.shop.{name}", "backend_type": backend}
    )
    record = record.with_role(Role.SOURCE, topic(".delayed", source))
    record = record.with_role(Role.TARGET, topic("", Ownership.CREATED))
    record = record.with_role(Role.DEAD_LETTER, topic(".dlq", Ownership.ADOPTED))
    record = record.with_role(Role.HISTORY, topic(".history", Ownership.CREATED))
    record = record.with_role(Role.OUTCOMES, topic(".outcomes", Ownership.CREATED))
    return record.with_buckets({f"{name}.delay.0": topic(".delay.0", Ownership.CREATED)})


def test_the_source_goes_last_and_target_history_and_outcomes_never() -> None:
    assert purge_steps(recorded("a"), topics=True) == [
        DeleteTopic("a.delay.0", "id.delay.0"),
        DeleteKeys("delaytopic.shop.a"),
        DeleteGroup("group.a"),
        DeleteTopic("a.dlq", "id.dlq"),
        DeleteTopic("a.delayed", "id.delayed"),
    ]


def test_a_source_that_stays_is_skipped_so_that_it_is_not_delivered_again() -> None:
    observed = purge_steps(recorded("a", Ownership.OBSERVED), topics=True)
    discarded = purge_steps(recorded("a"), topics=False)

    assert observed[2:] == [SkipToEnd("group.a", "a.delayed"), DeleteTopic("a.dlq", "id.dlq")]
    assert discarded[2:] == [SkipToEnd("group.a", "a.delayed")]


def test_without_redis_there_are_no_keys_to_delete() -> None:
    steps = purge_steps(recorded("a", backend=BackendType.KAFKA_BUCKETS), topics=True)

    assert not [step for step in steps if isinstance(step, DeleteKeys)]


def test_a_dead_letter_topic_that_is_the_target_stays() -> None:
    record = recorded("a")
    assert record.target is not None

    steps = purge_steps(record.with_role(Role.DEAD_LETTER, record.target), topics=True)

    assert [step.name for step in steps if isinstance(step, DeleteTopic)] == ["a.delay.0", "a.delayed"]


def backlog_steps(record: RouteRecord) -> list[BacklogStep]:
    """Without Strimzi there are no others."""
    return [step for step in purge_steps(record, topics=True) if not isinstance(step, DeleteObject)]


def test_what_describes_a_topic_goes_before_it_and_nothing_of_others() -> None:
    record = recorded("a")
    mine = {"delaytopic.dev/namespace": record.namespace, "delaytopic.dev/name": record.name}
    bucket, dead_letter, target, source = (
        {"metadata": {"name": name, "labels": labels}}
        for name, labels in (("a.delay.0", mine), ("a.dlq", {}), ("a", mine), ("a.delayed", mine))
    )
    live = {"a.delay.0": bucket, "a.dlq": dead_letter, "a": target, "a.delayed": source}

    steps = purge_steps(record, topics=True, strimzi=StrimziTopics(StrimziPlace("kafka", "shared"), live))

    assert steps == [
        DeleteObject(bucket),
        DeleteTopic("a.delay.0", "id.delay.0"),
        DeleteKeys("delaytopic.shop.a"),
        DeleteGroup("group.a"),
        DeleteTopic("a.dlq", "id.dlq"),
        DeleteObject(source),
        DeleteTopic("a.delayed", "id.delayed"),
    ]


def target_of(server: RedisAddress) -> RedisTarget:
    return RedisTarget("127.0.0.1", server.port, 0, tls=False)


def store_far(client: Redis | RedisCluster, backend_id: str, shards: int = 3) -> set[bytes]:
    """Keys as relays have them."""
    keys = {b"{%s:%d}:%s" % (backend_id.encode(), shard, kind) for shard in range(shards) for kind in KINDS}
    if isinstance(client, RedisCluster):
        for key in keys:
            client.set(key, b"x")
    else:
        client.mset(dict.fromkeys(keys, b"x"))
    return keys


def keys_with(client: Redis, name: str) -> set[bytes]:
    """All keys in which this name occurs."""
    return set(client.scan_iter(match=f"*{name}*", count=10_000))


def nobody_stops() -> None:
    """Go on."""


@pytest.mark.integration
def test_exactly_the_keys_of_one_backend_id_go(redis: RedisAddress) -> None:
    name = unique("delaytopic.shop.a")
    with Redis.from_url(redis.url) as client:
        store_far(client, name)
        others = store_far(client, f"{name}-2") | store_far(client, f"{name}b")
        client.set(f"{name}:0", b"a stranger's")

        gone = delete_keys(target_of(redis), name, nobody_stops)
        again = delete_keys(target_of(redis), name, nobody_stops)

        assert (gone, again) == (15, 0)
        assert keys_with(client, name) == others | {f"{name}:0".encode()}


@pytest.mark.integration
def test_characters_that_mean_something_to_redis_are_taken_as_they_are(redis: RedisAddress) -> None:
    name = unique("delaytopic")
    with Redis.from_url(redis.url) as client:
        store_far(client, f"{name}-a*[b]?", shards=1)
        others = store_far(client, f"{name}-axxb", shards=1) | store_far(client, f"{name}-axbx", shards=1)

        delete_keys(target_of(redis), f"{name}-a*[b]?", nobody_stops)

        assert keys_with(client, name) == others


@pytest.mark.integration
def test_many_keys_go_in_batches_between_which_the_purge_can_be_stopped(redis: RedisAddress) -> None:
    asked = 0

    def lead_for_a_while() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise NotLeading("another operator leads")

    name = unique("many")
    with Redis.from_url(redis.url) as client:
        store_far(client, name, shards=2_000)

        with pytest.raises(NotLeading):
            delete_keys(target_of(redis), name, lead_for_a_while)
        left = len(keys_with(client, name))
        delete_keys(target_of(redis), name, nobody_stops)

        assert 0 < left < 10_000
        assert keys_with(client, name) == set()


@pytest.mark.integration
def test_a_redis_cluster_is_emptied_shard_by_shard(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(cluster_enabled="yes")
    with Redis.from_url(server.url) as node:
        node.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        wait_for(lambda: b"cluster_state:ok" in node.execute_command("CLUSTER", "INFO", NEVER_DECODE=True))
    client = RedisCluster(host="127.0.0.1", port=server.port)
    store_far(client, "delaytopic.shop.a", shards=20)
    others = store_far(client, "delaytopic.shop.b")

    gone = delete_keys(target_of(server), "delaytopic.shop.a", nobody_stops)

    assert gone == 100
    assert set(client.keys()) == others
    client.close()


@pytest.mark.integration
def test_a_redis_that_is_away_is_told_and_nothing_is_taken_as_done(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    server.kill()

    with pytest.raises(RedisUnavailable, match=f"Redis at 127.0.0.1:{server.port} is not available"):
        delete_keys(target_of(server), "a", nobody_stops)


@pytest.mark.integration
@pytest.mark.parametrize("source", [Ownership.CREATED, Ownership.OBSERVED])
def test_a_whole_route_goes_and_leaves_its_neighbour_alone(
    cluster: KafkaCluster, kafka: KafkaAddress, redis: RedisAddress, topic: str, source: Ownership
) -> None:
    # Given two routes with backlogs
    names = (topic, f"{topic}-2")
    for name in names:
        for suffix in SUFFIXES:
            made(cluster, name + suffix)
        produce(kafka.bootstrap_servers, f"{name}.delayed", 4)
        commit(kafka.bootstrap_servers, f"group.{name}", f"{name}.delayed", 2, "1;3;4;5;")
    with Redis.from_url(redis.url) as client:
        store_far(client, f"delaytopic.shop.{names[0]}")
        neighbours = store_far(client, f"delaytopic.shop.{names[1]}")
        record = with_real_ids(cluster, recorded(topic, source))

        # When one is given up, each step twice
        for step in backlog_steps(record):
            do_purge_step(step, cluster, target_of(redis), nobody_stops)
            do_purge_step(step, cluster, target_of(redis), nobody_stops)

        # Then the target, the history, the outcomes, an observed source, and all of the other are still there
        assert keys_with(client, f"delaytopic.shop.{topic}") == neighbours
    kept = [
        topic,
        f"{topic}.history",
        f"{topic}.outcomes",
        *([f"{topic}.delayed"] if source is Ownership.OBSERVED else []),
    ]
    mine, of_neighbour = ([name + suffix for suffix in SUFFIXES] for name in names)
    wait_for(lambda: cluster.view([*mine, *of_neighbour], fresh=True).topics.keys() == {*kept, *of_neighbour})
    assert cluster.committed(f"group.{topic}", f"{topic}.delayed") == (
        {} if source is Ownership.CREATED else {0: Committed(4)}
    )
    assert cluster.committed(f"group.{names[1]}", f"{names[1]}.delayed") == {0: Committed(2, "1;3;4;5;")}


def with_real_ids(cluster: KafkaCluster, record: RouteRecord) -> RouteRecord:
    """As the operator has seen them."""

    def real(one: TopicRecord | None) -> TopicRecord:
        assert one is not None
        return one.model_copy(update={"topic_id": cluster.view([one.name], fresh=True).topics[one.name].topic_id})

    for role in Role:
        record = record.with_role(role, real(record.of_role(role)))
    return record.with_buckets({name: real(one) for name, one in record.buckets.items()})
