"""Opening a real Redis: addresses, credentials, TLS, and what is said when it does not open."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import redis
from tests.harness.names import unique
from tests.harness.shared_servers import SharedRedis
from tests.support.paths import ROOT
from tests.support.relay.in_world import delivered_offsets, produce, start
from tests.support.relay.world import World
from tests.support.servers.redis_server import RedisFields, refusal, serves_as_a_store

from delaytopic_local.servers.process import free_port
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.reader import RedisPendingReader
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import END_MS, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogUnavailable, ConfigurationError, RelayError

integration = pytest.mark.integration
StartRedis = Callable[..., RedisServer]
BACKENDS_PAGE = ROOT / "docs" / "reference" / "backends.md"
OWN_ID = "delaytopic.shop.reminders"
SECRET = "hunter2-and-more"
FIRST = StoreVersion("relay-a", 1, 0)
SECOND = StoreVersion("relay-a", 2, 10)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def set_password(server: RedisServer, password: str) -> None:
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        client.config_set("requirepass", password)


# --- fields that need no server to be wrong


def test_without_url_and_url_file_the_settings_are_refused() -> None:
    assert refusal(RedisFields()) == ("backend.redis has neither url nor urlFile: one of them must name the Redis")


@pytest.mark.parametrize(("field", "name"), [("ca_file", "caFile"), ("certificate_file", "certificateFile")])
def test_tls_files_with_a_url_without_tls_are_refused(field: str, name: str) -> None:
    assert refusal(RedisFields(url="redis://cache", **{field: "/etc/tls/x.pem"})) == (
        f"backend.redis.{name} is set, but the url does not begin with rediss://"
    )


def test_a_certificate_without_its_key_is_refused() -> None:
    assert refusal(RedisFields(url="rediss://cache", certificate_file="/etc/tls/x.pem")) == (
        "backend.redis.certificateFile and keyFile go together: set both or neither"
    )


def test_a_file_of_the_authority_that_is_not_there_is_named() -> None:
    message = refusal(RedisFields(url="rediss://cache", ca_file="/no/such/ca.pem"))

    assert message.startswith("backend.redis.caFile: /no/such/ca.pem is no readable PEM file (")


def test_a_file_of_the_authority_that_is_no_pem_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "ca.pem", "certainly not")

    assert refusal(RedisFields(url="rediss://cache", ca_file=path)).startswith(
        f"backend.redis.caFile: {path} is no readable PEM file ("
    )


def test_a_certificate_that_is_no_pem_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "client.pem", "certainly not")

    assert refusal(RedisFields(url="rediss://cache", certificate_file=path, key_file=path)).startswith(
        f"backend.redis.certificateFile and keyFile: {path} and {path} are no readable pair of PEM files ("
    )


def test_a_url_that_is_none_is_named_by_its_field_and_without_its_text(tmp_path: Path) -> None:
    path = write(tmp_path / "url", "redis://:hunter2@cache?db=3\n")

    assert [refusal(RedisFields(url_file=path)), refusal(RedisFields(url="redis://cache?db=3"))] == [
        f"backend.redis.{field}: has a query that nobody reads; write the database behind the host: redis://host:6379/3"
        for field in ("urlFile", "url")
    ]


@pytest.mark.parametrize("url", ["redis://relay:hunter2@cache", "redis://:hunter2@cache", "unix://:hunter2@/run/x"])
def test_a_url_in_the_configuration_must_not_hold_credentials(url: str) -> None:
    assert refusal(RedisFields(url=url)) == (
        "backend.redis.url holds credentials: put them into usernameFile and passwordFile, or use urlFile"
    )


def test_a_url_file_that_is_not_there_is_named() -> None:
    assert refusal(RedisFields(url_file="/no/such/url")) == (
        "backend.redis.urlFile: /no/such/url cannot be read: No such file or directory"
    )


# --- addresses


@integration
def test_a_url_of_a_host_opens_its_server(redis: SharedRedis) -> None:
    connection = connect_redis(RedisFields(url=redis.url))

    assert (connection.where, serves_as_a_store(connection)) == (f"Redis at 127.0.0.1:{redis.port}", True)


@integration
def test_a_url_of_a_socket_opens_its_server(start_redis: StartRedis, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    start_redis(unixsocket=str(path))

    connection = connect_redis(RedisFields(url=f"unix://{path}?db=1"))

    assert (connection.where, serves_as_a_store(connection)) == (f"Redis at {path}", True)


@integration
def test_databases_of_a_server_are_apart(redis: SharedRedis) -> None:
    backend_id = unique("apart")
    stores = [
        RedisBacklogStore(connect_redis(RedisFields(url=f"redis://127.0.0.1:{redis.port}/{db}")), backend_id)
        for db in (2, 3)
    ]

    stores[0].put(0, None, FIRST, [], {})

    assert [store.version(0) for store in stores] == [FIRST, None]
    for store in stores:
        store.close()


def test_a_host_where_nothing_listens_is_unavailable() -> None:
    port = free_port()

    with pytest.raises(BacklogUnavailable) as caught:
        connect_redis(RedisFields(url=f"redis://127.0.0.1:{port}"))

    assert str(caught.value) == (
        f"Redis at 127.0.0.1:{port} is not available: Error 111 connecting to 127.0.0.1:{port}. Connection refused."
    )


def test_a_socket_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(BacklogUnavailable, match=f"Redis at {tmp_path}/redis.sock is not available"):
        connect_redis(RedisFields(url=f"unix://{tmp_path}/redis.sock"))


# --- credentials


@integration
def test_a_server_that_wants_credentials_and_gets_none_is_told_in_one_line(start_redis: StartRedis) -> None:
    server = start_redis()
    set_password(server, SECRET)

    assert refusal(RedisFields(url=server.url)) == (
        f"Redis at 127.0.0.1:{server.port} refuses the credentials (Authentication required.): "
        "check backend.redis.usernameFile and passwordFile"
    )


@integration
def test_a_wrong_password_is_told_in_one_line(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    set_password(server, SECRET)

    assert refusal(RedisFields(url=server.url, password_file=write(tmp_path / "password", "guess"))) == (
        f"Redis at 127.0.0.1:{server.port} refuses the credentials "
        "(invalid username-password pair or user is disabled.): check backend.redis.usernameFile and passwordFile"
    )


@integration
def test_a_password_comes_from_its_file_without_the_line_end(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    set_password(server, " with blanks ")

    connection = connect_redis(
        RedisFields(url=server.url, password_file=write(tmp_path / "password", " with blanks \n"))
    )

    assert serves_as_a_store(connection)


@integration
def test_a_user_name_comes_from_its_file(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        client.acl_setuser("relay", enabled=True, passwords=["+" + SECRET], keys="*", commands=["+@all"])
        client.acl_setuser("default", enabled=False)

    connection = connect_redis(
        RedisFields(
            url=server.url,
            username_file=write(tmp_path / "username", "relay"),
            password_file=write(tmp_path / "password", SECRET),
        )
    )

    assert serves_as_a_store(connection)


@integration
def test_a_url_from_a_file_may_carry_the_password(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    set_password(server, SECRET)

    connection = connect_redis(
        RedisFields(url_file=write(tmp_path / "url", f"redis://:{SECRET}@127.0.0.1:{server.port}\n"))
    )

    assert (connection.where, serves_as_a_store(connection)) == (f"Redis at 127.0.0.1:{server.port}", True)


@integration
def test_a_rotated_password_is_read_again_for_the_next_connection(start_redis: StartRedis, tmp_path: Path) -> None:
    # Given an open backlog
    server = start_redis()
    set_password(server, SECRET)
    path = write(tmp_path / "password", SECRET)
    store = RedisBacklogStore(connect_redis(RedisFields(url=server.url, password_file=path)), "shop")
    store.put(0, None, FIRST, [], {})

    # When the password changes, in the server and in the file, and connections are closed
    with redis.Redis(host="127.0.0.1", port=server.port, password=SECRET) as client:
        client.config_set("requirepass", "the-next-one")
        write(tmp_path / "password", "the-next-one")
        client.client_kill_filter(_type="normal")

    assert store.version(0) == FIRST
    store.close()


@integration
def test_a_password_file_that_is_not_there_is_named(redis: SharedRedis) -> None:
    assert refusal(RedisFields(url=redis.url, password_file="/no/such/password")) == (
        "backend.redis.passwordFile: /no/such/password cannot be read: No such file or directory"
    )


def documented_user() -> list[str]:
    """Return the command that the page gives for the user of one DelayTopic's relays, `shop/reminders`."""
    (line,) = re.findall(r"(?m)^ACL SETUSER .*$", BACKENDS_PAGE.read_text(encoding="utf-8"))
    return str(line).replace("PASSWORD", SECRET).split()


def as_user(server: RedisServer, command: Sequence[str], directory: Path) -> RedisConnection:
    """Make a user by this command, and connect as it."""
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        client.execute_command(*command)
    fields = RedisFields(
        url=server.url,
        username_file=write(directory / "username", command[2]),
        password_file=write(directory / "password", SECRET),
    )
    return connect_redis(fields)


@integration
def test_the_documented_user_can_do_all_that_a_relay_does(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis(appendonly="yes")
    connection = as_user(server, documented_user(), tmp_path)
    world = World()

    warnings = check_redis(connection)
    connection.ask(connection.client.time)
    reader = RedisPendingReader(connection, OWN_ID)
    first = start(world, RedisBacklogStore(connection, OWN_ID), "first")
    for after_ms in (30_000, 1_900_000):
        produce(world, after_ms, name=b"%d" % after_ms)
    first.run(1_000)
    slices = reader.slices(0, 0, END_MS)
    second = start(world, RedisBacklogStore(connection, OWN_ID), "second")
    second.run(1_000)
    RedisBacklogStore(connection, OWN_ID).reset(0, [])
    second.run(2_000_000, step_ms=5_000)

    assert [warning for warning in warnings if "does not permit" in warning] == []
    assert sum(slices.values()) == 2
    assert delivered_offsets(world) == [0, 1]
    assert serves_as_a_store(connection, OWN_ID)


@integration
@pytest.mark.parametrize(
    "other_id",
    ["delaytopic.shop.reminders2", "delaytopic.shop.reminder", "delaytopic.shop.x", "delaytopic.team.reminders"],
)
def test_the_documented_user_cannot_touch_what_another_delay_topic_keeps(
    other_id: str, start_redis: StartRedis, tmp_path: Path
) -> None:
    # Given the backlog of another DelayTopic on the same Redis
    server = start_redis()
    whole = connect_redis(RedisFields(url=server.url))
    RedisBacklogStore(whole, other_id).put(
        0, None, FIRST, [Segment(Slice(0, 1_000), 1, b"theirs")], {b"id": IdEntry(1, 2, 3)}
    )
    store = RedisBacklogStore(as_user(server, documented_user(), tmp_path), other_id)
    calls: list[Callable[[], object]] = [
        lambda: store.version(0),
        lambda: store.put(0, FIRST, StoreVersion("thief", 9, 9), [], {}),
        lambda: store.page(0, FIRST, 0, 4),
        lambda: store.load(0, FIRST, Slice(0, 1_000), 0, 1),
        lambda: store.ids(0, FIRST, [b"id"]),
        lambda: store.drop(0, FIRST, [Slice(0, 1_000)], [b"id"]),
        lambda: store.reset(0, [Slice(0, 1_000)]),
    ]

    for call in calls:
        with pytest.raises(ConfigurationError, match="does not permit what the relay needs"):
            call()

    kept = RedisBacklogStore(whole, other_id)
    assert (kept.version(0), kept.load(0, FIRST, Slice(0, 1_000), 0, 2)) == (FIRST, [b"theirs"])
    assert kept.ids(0, FIRST, [b"id"]) == [IdEntry(1, 2, 3)]
    kept.close()


@integration
def test_without_the_commands_for_the_checks_at_start_a_relay_says_what_to_check_by_hand(
    start_redis: StartRedis, tmp_path: Path
) -> None:
    server = start_redis()
    command = [word for word in documented_user() if word not in ("+info", "+config|get")]
    connection = as_user(server, command, tmp_path)

    assert check_redis(connection) == [
        f"Redis at 127.0.0.1:{server.port} does not permit to read its version (INFO), maxmemory-policy, which must be "
        "noeviction, save, auto-aof-rewrite-min-size: check by hand what its operator set"
    ]
    assert serves_as_a_store(connection, OWN_ID)


@integration
@pytest.mark.parametrize("by", ["files", "url"])
def test_no_secret_is_in_any_message_cause_repr_or_log(
    by: str, start_redis: StartRedis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given an open backlog on a server with a password
    caplog.set_level(logging.DEBUG)
    server = start_redis()
    set_password(server, SECRET)
    fields = RedisFields(url=server.url, password_file=write(tmp_path / "password", SECRET))
    if by == "url":
        fields = RedisFields(url_file=write(tmp_path / "url", f"redis://:{SECRET}@127.0.0.1:{server.port}"))
    connection = connect_redis(fields)
    store = RedisBacklogStore(connection, "shop")

    # When the password is no longer the right one, and when the server is gone
    with redis.Redis(host="127.0.0.1", port=server.port, password=SECRET) as client:
        client.config_set("requirepass", "another")
        client.client_kill_filter(_type="normal")
    texts = [failure(lambda: store.version(0)), failure(lambda: connect_redis(fields))]
    server.kill()
    texts += [failure(lambda: store.version(0)), failure(lambda: connect_redis(fields))]

    texts += [repr(store), repr(connection), repr(connection.client), caplog.text]
    assert [text for text in texts if SECRET in text] == []


def failure(call: Callable[[], object]) -> str:
    """The error with its causes, as a log would show it."""
    with pytest.raises(RelayError) as caught:
        call()
    return "".join(traceback.format_exception(caught.value))
