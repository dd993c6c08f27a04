"""Opening a real Redis: addresses, credentials, TLS, and what is said when it does not open."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from tests.harness.names import unique
from tests.harness.shared_servers import SharedRedis
from tests.support.redis_server import RedisFields, refusal, serves_as_a_shelf

from delaytopic_cli.embedded.ports import free_port
from delaytopic_cli.embedded.redis_server import RedisServer
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.preflight import check_redis
from delaytopic_relay.backlog.redis.store import RedisShelf
from delaytopic_relay.backlog.store import Position
from delaytopic_relay.errors import ConfigurationError, RelayError, ShelfUnavailable

integration = pytest.mark.integration
StartRedis = Callable[..., RedisServer]
SECRET = "hunter2-and-more"
FIRST = Position("relay-a", 1, 0)
SECOND = Position("relay-a", 2, 10)


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


def test_a_url_file_that_is_not_there_is_named() -> None:
    assert refusal(RedisFields(url_file="/no/such/url")) == (
        "backend.redis.urlFile: /no/such/url cannot be read: No such file or directory"
    )


# --- addresses


@integration
def test_a_url_of_a_host_opens_its_server(redis: SharedRedis) -> None:
    connection = connect_redis(RedisFields(url=redis.url))

    assert (connection.where, serves_as_a_shelf(connection)) == (f"Redis at 127.0.0.1:{redis.port}", True)


@integration
def test_a_url_of_a_socket_opens_its_server(start_redis: StartRedis, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    start_redis(unixsocket=str(path))

    connection = connect_redis(RedisFields(url=f"unix://{path}?db=1"))

    assert (connection.where, serves_as_a_shelf(connection)) == (f"Redis at {path}", True)


@integration
def test_databases_of_a_server_are_apart(redis: SharedRedis) -> None:
    backend_id = unique("apart")
    shelves = [
        RedisShelf(connect_redis(RedisFields(url=f"redis://127.0.0.1:{redis.port}/{db}")), backend_id) for db in (2, 3)
    ]

    shelves[0].put(0, None, FIRST, [], {})

    assert [shelf.position(0) for shelf in shelves] == [FIRST, None]
    for shelf in shelves:
        shelf.close()


def test_a_host_where_nothing_listens_is_unavailable() -> None:
    port = free_port()

    with pytest.raises(ShelfUnavailable) as caught:
        connect_redis(RedisFields(url=f"redis://127.0.0.1:{port}"))

    assert str(caught.value) == (
        f"Redis at 127.0.0.1:{port} is not available: Error 111 connecting to 127.0.0.1:{port}. Connection refused."
    )


def test_a_socket_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ShelfUnavailable, match=f"Redis at {tmp_path}/redis.sock is not available"):
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

    assert serves_as_a_shelf(connection)


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

    assert serves_as_a_shelf(connection)


@integration
def test_a_url_from_a_file_may_carry_the_password(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    set_password(server, SECRET)

    connection = connect_redis(
        RedisFields(url_file=write(tmp_path / "url", f"redis://:{SECRET}@127.0.0.1:{server.port}\n"))
    )

    assert (connection.where, serves_as_a_shelf(connection)) == (f"Redis at 127.0.0.1:{server.port}", True)


@integration
def test_a_rotated_password_is_read_again_for_the_next_connection(start_redis: StartRedis, tmp_path: Path) -> None:
    # Given an open shelf
    server = start_redis()
    set_password(server, SECRET)
    path = write(tmp_path / "password", SECRET)
    shelf = RedisShelf(connect_redis(RedisFields(url=server.url, password_file=path)), "shop")
    shelf.put(0, None, FIRST, [], {})

    # When the password changes, in the server and in the file, and connections are closed
    with redis.Redis(host="127.0.0.1", port=server.port, password=SECRET) as client:
        client.config_set("requirepass", "the-next-one")
        write(tmp_path / "password", "the-next-one")
        client.client_kill_filter(_type="normal")

    assert shelf.position(0) == FIRST
    shelf.close()


@integration
def test_a_password_file_that_is_not_there_is_named(redis: SharedRedis) -> None:
    assert refusal(RedisFields(url=redis.url, password_file="/no/such/password")) == (
        "backend.redis.passwordFile: /no/such/password cannot be read: No such file or directory"
    )


@integration
def test_a_user_with_the_documented_commands_only_is_enough(start_redis: StartRedis, tmp_path: Path) -> None:
    # Given a user who may touch the backend's keys, with the commands that the shelf's module lists
    server = start_redis()
    commands = (
        "get set rpush lrange zadd zrem zrange zcard hincrby hset hget hmget hkeys hlen hdel del unlink "
        "eval evalsha ping hello"
    )
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        rights = ["-@all", *(f"+{name}" for name in commands.split())]
        client.execute_command("ACL", "SETUSER", "relay", "on", f">{SECRET}", "~{shop:*", *rights)
    fields = RedisFields(
        url=server.url,
        username_file=write(tmp_path / "username", "relay"),
        password_file=write(tmp_path / "password", SECRET),
    )

    connection = connect_redis(fields)

    assert check_redis(connection) == [
        f"Redis at 127.0.0.1:{server.port} does not permit to read its version (INFO), maxmemory-policy, which must be "
        "noeviction, save, auto-aof-rewrite-min-size: check by hand what its operator set"
    ]
    with pytest.raises(ConfigurationError, match="does not permit what the relay needs"):
        RedisShelf(connection, "somebody-elses").put(0, None, FIRST, [], {})
    assert serves_as_a_shelf(connection)


@integration
@pytest.mark.parametrize("by", ["files", "url"])
def test_no_secret_is_in_any_message_cause_repr_or_log(
    by: str, start_redis: StartRedis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given an open shelf on a server with a password
    caplog.set_level(logging.DEBUG)
    server = start_redis()
    set_password(server, SECRET)
    fields = RedisFields(url=server.url, password_file=write(tmp_path / "password", SECRET))
    if by == "url":
        fields = RedisFields(url_file=write(tmp_path / "url", f"redis://:{SECRET}@127.0.0.1:{server.port}"))
    connection = connect_redis(fields)
    shelf = RedisShelf(connection, "shop")

    # When the password is no longer the right one, and when the server is gone
    with redis.Redis(host="127.0.0.1", port=server.port, password=SECRET) as client:
        client.config_set("requirepass", "another")
        client.client_kill_filter(_type="normal")
    texts = [failure(lambda: shelf.position(0)), failure(lambda: connect_redis(fields))]
    server.kill()
    texts += [failure(lambda: shelf.position(0)), failure(lambda: connect_redis(fields))]

    texts += [repr(shelf), repr(connection), repr(connection.client), caplog.text]
    assert [text for text in texts if SECRET in text] == []


def failure(call: Callable[[], object]) -> str:
    """The error with its causes, as a log would show it."""
    with pytest.raises(RelayError) as caught:
        call()
    return "".join(traceback.format_exception(caught.value))
