"""The program of the Kafka image: one broker, as the project's own launcher starts it, for other machines to reach.

Environment: KAFKA_DIRECTORY (data and log), KAFKA_ADVERTISED (host:port that clients are told), KAFKA_HEAP_MIB,
KAFKA_SETTINGS (a file of `name=value` lines that are added to server.properties), KAFKA_READY (a file that is there
while Kafka answers). For one of several brokers: KAFKA_CONTROLLERS (host:port of every node's controller, with commas
between), KAFKA_NODE (what its own begins with, up to the first dot), KAFKA_CLUSTER_ID.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from delaytopic_local.servers.kafka_jars import KAFKA_VERSION
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.kafka_settings import FIRST_NODE_ID, ClusterNode
from delaytopic_process.stop_flag import StopFlag
from delaytopic_process.waiting import wait_until

JARS = Path("/opt/kafka/jars")
PORT = 9092
CONTROLLER_PORT = 9093
POLL_SECONDS = 0.5
LOG_CHARACTERS = 8_000
# Another pod has a new address when it comes back, and none while it is away.
JVM_OPTIONS = ("-Dsun.net.inetaddr.ttl=1", "-Dsun.net.inetaddr.negative.ttl=0")


def main() -> int:
    """Run it until SIGTERM; returns the exit code."""
    stop = StopFlag()
    ready = Path(os.environ.get("KAFKA_READY", "/tmp/ready"))
    ready.unlink(missing_ok=True)
    _make_jars_known()
    server = KafkaServer(
        Path(os.environ.get("KAFKA_DIRECTORY", "/var/lib/kafka")),
        port=PORT,
        node=cluster_node(os.environ),
        settings=broker_settings(os.environ),
        heap_mib=int(os.environ.get("KAFKA_HEAP_MIB", "512")),
        jvm_options=JVM_OPTIONS,
    )
    server.start()
    print(f"Kafka {KAFKA_VERSION} is ready", flush=True)
    ready.touch()
    wait_until(lambda: stop() or not server.is_running(), timeout_seconds=math.inf, poll_seconds=POLL_SECONDS)
    ready.unlink()
    if stop():
        server.stop()
        return 0
    print(server.log_file.read_text(encoding="utf-8", errors="replace")[-LOG_CHARACTERS:], file=sys.stderr)
    return 1


def cluster_node(environment: Mapping[str, str]) -> ClusterNode:
    """The node of several that the environment names, or one that is alone."""
    if "KAFKA_CONTROLLERS" not in environment:
        return ClusterNode([f"127.0.0.1:{CONTROLLER_PORT}"])
    controllers = environment["KAFKA_CONTROLLERS"].split(",")
    names = [address.partition(".")[0] for address in controllers]
    own_id = names.index(environment["KAFKA_NODE"]) + FIRST_NODE_ID
    return ClusterNode(controllers, own_id, environment["KAFKA_CLUSTER_ID"])


def broker_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Listeners on all addresses, and the lines of the file KAFKA_SETTINGS."""
    settings = {
        "listeners": f"PLAINTEXT://:{PORT},CONTROLLER://:{CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{environment.get('KAFKA_ADVERTISED', f'127.0.0.1:{PORT}')}",
    }
    file = environment.get("KAFKA_SETTINGS")
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file else []
    for line in lines:
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            settings[name.strip()] = value.strip()
    return settings


def _make_jars_known() -> None:
    """The launcher looks for jars that an earlier run downloaded: it finds those of the image."""
    cache = Path("/tmp/cache")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    index = cache / "delaytopic" / f"kafka-{KAFKA_VERSION}-jars.json"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(json.dumps([str(jar) for jar in sorted(JARS.glob("*.jar"))]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
