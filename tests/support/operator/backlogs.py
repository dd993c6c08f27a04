"""The backlog of a DelayTopic before and after it is gone, for tests of deletion."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from redis import Redis
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import Platform
from tests.support.relay.process import wait_for

from delaytopic_local.verifier.verdict import Verdict
from delaytopic_operator.decide.relay_configs import config_place
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RecordState, RouteRecord, parse_record, record_name
from delaytopic_operator.resources import relays_name

METRIC = "delaytopic_operator_retained_backlog_messages"


def all_arrived(records: int) -> tuple[int, int, dict[str, int]]:
    """Return the `summary` of a verdict by which each record arrived exactly once, and none early."""
    return records, 0, {}


def summary(verdict: Verdict) -> tuple[int, int, dict[str, int]]:
    """Delivered, pending, and how often each promise was broken."""
    broken = ("lost", "twice", "early", "unwanted", "unknown", "altered", "misdirected", "dead_letters_unwanted")
    counts = {name: len(getattr(verdict, name)) for name in broken}
    return verdict.delivered, verdict.pending, {name: count for name, count in counts.items() if count}


def await_pending(platform: Platform, name: str, count: int, seconds: float = 40.0) -> Object:
    """Until the status says that so many records are pending."""

    def holds(found: Object | None) -> bool:
        return bool((found or {}).get("status", {}).get("backlog", {}).get("pending") == count)

    return await_object(platform.client, platform.path(name), holds, seconds=seconds) or {}


def with_pending(platform: Platform, team: AppTeam, delays_ms: list[int]) -> list[int]:
    """Records that the relays have taken in, as the status shows; their due times."""
    platform.await_condition(team.name, "Ready", seconds=60)
    due_ms = team.send_due_in(delays_ms)
    await_pending(platform, team.name, len(delays_ms))
    return due_ms


def await_nothing_taken_in(platform: Platform, name: str) -> None:
    """Wait until no relay is left that takes records in: those of the drain are ready, or the drain is over."""
    await_record(platform, name, RecordState.DRAINING, RecordState.RETAINED)
    relays = relays_name(Key(platform.team, name))

    def suspended() -> bool:
        found = relay_config(platform, name)
        return found is None or "suspend: Ingest" in found["data"]["relay.yaml"]

    wait_for(suspended)
    path = f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays}"
    left = await_object(platform.client, path, lambda found: found is None or is_rolled_out(found, 1), seconds=60)
    # A Deployment does not count pods that end, and those still take records in.
    wait_for(lambda: len(platform.objects("pods", "v1", name)) <= (0 if left is None else 1))


def relay_config(platform: Platform, name: str) -> Object | None:
    """The ConfigMap that relays of a DelayTopic are started from; None without a Deployment."""
    places = {config_place(each) for each in platform.objects("deployments", name=name)}
    found = platform.objects("configmaps", "v1", name)
    places_of = ((each, (each["metadata"]["namespace"], each["metadata"]["name"])) for each in found)
    return next((each for each, place in places_of if place in places), None)


def relay_config_path(platform: Platform, name: str) -> str:
    found = relay_config(platform, name)
    assert found is not None
    return f"/api/v1/namespaces/{found['metadata']['namespace']}/configmaps/{found['metadata']['name']}"


def is_rolled_out(deployment: Object, replicas: int) -> bool:
    """Return whether all pods are of the present template, available, and as many as these."""
    status = deployment.get("status", {})
    counts = {status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    return counts == {replicas} and status.get("observedGeneration") == deployment["metadata"]["generation"]


def await_record(platform: Platform, name: str, *states: RecordState, seconds: float = 40.0) -> RouteRecord:
    """The record of the route, once it is at one of these states."""

    def holds(found: Object | None) -> bool:
        return found is not None and parse_record(found).state in states

    found = await_object(platform.client, record_path(platform, name), holds, seconds=seconds)
    assert found is not None
    return parse_record(found)


def record_path(platform: Platform, name: str) -> str:
    return f"/api/v1/namespaces/{platform.namespace}/configmaps/{record_name(Key(platform.team, name))}"


def events_of(platform: Platform, name: str) -> dict[str, tuple[str, str]]:
    """Type and note of each event about a DelayTopic, by reason."""
    listed = platform.client.get(f"/apis/events.k8s.io/v1/namespaces/{platform.team}/events")["items"]
    about = [event for event in listed if event["regarding"]["name"] == name]
    return {event["reason"]: (event["type"], event["note"]) for event in about}


def await_event(platform: Platform, name: str, reason: str) -> tuple[str, str]:
    """Type and note of an event, once there is one."""
    wait_for(lambda: reason in events_of(platform, name), lambda: str(events_of(platform, name)), 20)
    return events_of(platform, name)[reason]


def retained_metric(platform: Platform, name: str) -> float | None:
    """Return the value on the operator's page; None: there is no such series."""
    series = f'{METRIC}{{delaytopic_name="{name}",delaytopic_namespace="{platform.team}"}}'
    lines = platform.operator.get("/metrics").splitlines()
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(METRIC)}
    return values.get(series, next((value for key, value in values.items() if f'"{name}"' in key), None))


def await_no_relays(platform: Platform, name: str | None = None) -> None:
    """Wait until no relay runs any more, and nothing of what they needed is left; of one DelayTopic if it is named."""
    wait_for(lambda: not objects_of(platform, name), lambda: str(objects_of(platform, name)))


def objects_of(platform: Platform, name: str | None = None) -> list[str]:
    """List the objects that the operator made in the platform's namespace, without records."""
    kinds = {
        "apps/v1": ("deployments",),
        "v1": ("configmaps", "serviceaccounts", "pods"),
        "policy/v1": ("poddisruptionbudgets",),
        "networking.k8s.io/v1": ("networkpolicies",),
    }
    found = [
        f"{kind}/{each['metadata']['name']}"
        for group, names in kinds.items()
        for kind in names
        for each in platform.objects(kind, group, name)
    ]
    return [each for each in found if "/delay-backlog-" not in each]


def topics_of(platform: Platform, name: str) -> set[str]:
    """Kafka topics whose name begins as those of a DelayTopic, without that beginning."""
    admin = AdminClient({"bootstrap.servers": platform.kafka.bootstrap_servers})
    begin = f"{platform.team}.{name}"
    return {topic.removeprefix(begin) for topic in admin.list_topics(timeout=30).topics if topic.startswith(begin)}


def redis_keys(platform: Platform, name: str) -> list[bytes]:
    """List the keys of the backlog."""
    with Redis.from_url(platform.redis.url) as client:
        return sorted(client.scan_iter(match=f"{{delaytopic.{platform.team}.{name}:*", count=1_000))


def groups_of(platform: Platform, name: str) -> list[str]:
    """The consumer group, if it is there."""
    admin = AdminClient({"bootstrap.servers": platform.kafka.bootstrap_servers})
    valid = admin.list_consumer_groups(request_timeout=30).result(30).valid
    return [group.group_id for group in valid if group.group_id == f"delaytopic.{platform.team}.{name}"]
