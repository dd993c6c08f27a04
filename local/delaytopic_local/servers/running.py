"""Edge: the Kafka and the Redis that `local` and the demo run on: their own, or the user's."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from delaytopic_gateway.client.topics import admin_client, partitions_by_topic
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.process import free_port
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_process.errors import InputError

ANSWER_SECONDS = 10.0
"""The time that a Kafka of the user has to answer."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The addresses of Kafka and Redis. `redis_url` is None when nothing needs a Redis."""

    directory: Path
    bootstrap_servers: str
    redis_url: str | None
    own_cluster: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of clients of the user's Kafka, such as `security.protocol`."""


@contextmanager
def data_directory(chosen: Path | None) -> Iterator[Path]:
    """Yield the chosen directory, for this process alone, or a temporary one that is deleted at the end.

    Raises InputError when another process uses the chosen one, or it can't be written to.
    """
    if chosen is None:
        with tempfile.TemporaryDirectory(prefix="delaytopic-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        lock = (chosen / "lock").open("w")
    except OSError as error:
        raise InputError(f"--data: {chosen} cannot be used: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"--data: another delaytopic uses {chosen}; end it or choose another folder") from error
        yield chosen.resolve()


@contextmanager
def running_servers(
    directory: Path,
    *,
    bootstrap_servers: str | None = None,
    settings: Mapping[str, str] | None = None,
    redis_url: str | None = None,
    needs_redis: bool = True,
    progress: Callable[[str], None],
) -> Iterator[Servers]:
    """Start what is not given, with the data in `directory`; stop it at the end, Kafka last.

    Raises EmbeddedServerError when a server can't be had or started, and KafkaUnreachableError when the given Kafka
    does not answer.
    """
    with ExitStack() as stack:
        own_cluster = bootstrap_servers is not None
        if bootstrap_servers is None:
            kafka = KafkaServer(directory / "kafka", port=kept_port(directory, "kafka"), report=progress)
            progress("starting Kafka ...")
            bootstrap_servers = stack.enter_context(kafka).bootstrap_servers
        else:
            progress(f"asking Kafka at {bootstrap_servers} ...")
            partitions_by_topic(admin_client(bootstrap_servers, settings), bootstrap_servers, ANSWER_SECONDS)
        if redis_url is None and needs_redis:
            progress("starting Redis ...")
            redis = RedisServer(directory / "redis", port=kept_port(directory, "redis"))
            redis_url = stack.enter_context(redis).url
        yield Servers(directory, bootstrap_servers, redis_url, own_cluster, settings or {})


def kept_port(directory: Path, server: str) -> int:
    """Return the port that the server had with this data, if it is free now, or else another; it is kept for next time.

    So an address that a program was given is good for the next run, too.
    """
    file = directory / f"{server}.port"
    try:
        before = int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        before = 0
    port = free_port(before)
    if port != before:
        file.write_text(str(port), encoding="ascii")
    return port
