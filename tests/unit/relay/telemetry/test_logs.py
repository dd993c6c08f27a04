from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.telemetry.logs import configure_logs


@pytest.fixture(autouse=True)
def _structlog_as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    target = io.StringIO()
    configure_logs(stream=target)
    return target


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fields(stream: io.StringIO) -> dict[str, Any]:
    """The fields of the only line, but for the time."""
    (line,) = lines(stream)
    del line["timestamp"]
    return line


def test_a_line_is_json_with_level_event_and_utc_time(stream: io.StringIO) -> None:
    structlog.get_logger().info("started", group="delaytopic.shop.reminders")

    (line,) = lines(stream)
    time = line.pop("timestamp")
    assert line == {"level": "info", "event": "started", "group": "delaytopic.shop.reminders"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", time)


def test_a_module_may_get_its_logger_before_the_logs_are_configured() -> None:
    log, stream = structlog.get_logger("kafka"), io.StringIO()
    configure_logs(stream=stream)

    log.warning("kafka client", text="broker down")

    assert fields(stream) == {"level": "warning", "event": "kafka client", "text": "broker down"}


def test_logs_go_to_standard_error_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()

    structlog.get_logger().info("started")

    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "started"


def test_what_is_below_the_level_is_not_logged() -> None:
    stream = io.StringIO()
    configure_logs("warning", stream)

    structlog.get_logger().info("started")
    structlog.get_logger().warning("slow")

    assert [line["event"] for line in lines(stream)] == ["slow"]


@pytest.mark.parametrize(
    "name", ["password", "sasl.password", "passwordHash", "client_secret", "TOKEN", "access_token", "credentials"]
)
def test_secrets_are_never_printed(stream: io.StringIO, name: str) -> None:
    structlog.get_logger().info("connecting", settings={name: "hunter2", "user": "relay"}, **{name: "hunter2"})

    assert fields(stream) == {
        "level": "info",
        "event": "connecting",
        "settings": {name: "<redacted>", "user": "relay"},
        name: "<redacted>",
    }


def test_the_name_of_a_file_with_a_secret_is_no_secret(stream: io.StringIO) -> None:
    structlog.get_logger().info(
        "reading", passwordFile="/run/redis/password", password_file=Path("/run/kafka/password")
    )

    assert fields(stream) == {
        "level": "info",
        "event": "reading",
        "passwordFile": "/run/redis/password",
        "password_file": "/run/kafka/password",
    }


def test_credentials_in_a_url_are_never_printed(stream: io.StringIO) -> None:
    error = ConnectionError("no answer from redis://relay:hunter2@redis:6379/0")

    structlog.get_logger().info("redis://:hunter2@redis", url="rediss://relay:hunter2@redis:6379", reason=error)

    assert fields(stream) == {
        "level": "info",
        "event": "redis://<redacted>@redis",
        "url": "rediss://<redacted>@redis:6379",
        "reason": "no answer from redis://<redacted>@redis:6379/0",
    }


def test_payloads_are_never_printed(stream: io.StringIO) -> None:
    schedule = Schedule(5, 41, b"hunter2", b"hunter2", [("trace", b"hunter2")])

    structlog.get_logger().info(
        "sent", value=b"hunter2", header=("trace", b"hunter2"), headers=[("a", b"hunter2")], schedule=schedule
    )

    assert fields(stream) == {
        "level": "info",
        "event": "sent",
        "value": "<7 bytes>",
        "header": ["trace", "<7 bytes>"],
        "headers": [["a", "<7 bytes>"]],
        "schedule": "<Schedule>",
    }


@pytest.mark.parametrize("target", [io.StringIO, Terminal])
def test_a_traceback_shows_where_but_neither_variables_nor_credentials(target: type[io.StringIO]) -> None:
    stream = target()
    configure_logs(stream=stream)
    payload = b"hunter2"

    try:
        raise ConnectionError(f"no answer from redis://relay:{payload.decode()}@redis")
    except ConnectionError:
        structlog.get_logger().exception("failed")

    text = stream.getvalue()
    assert "hunter2" not in text
    assert "Traceback" in text
    assert "ConnectionError: no answer from redis://<redacted>@redis" in text


def test_a_terminal_gets_text_instead_of_json() -> None:
    terminal = Terminal()
    configure_logs(stream=terminal)

    structlog.get_logger().info("started", password="hunter2")

    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert re.search(r"Z \[info +\] started +password=<redacted>", text)
