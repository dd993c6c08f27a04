"""Options and files of `delaytopic-gateway`."""

from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_api import InvalidDocument
from delaytopic_gateway.__main__ import kafka_settings, relay_token, run
from delaytopic_process.errors import InputError


def test_the_login_to_kafka_is_read_as_relays_read_theirs(tmp_path: Path) -> None:
    password, file = tmp_path / "password", tmp_path / "kafka.yaml"
    password.write_text("secret\n", encoding="utf-8")
    file.write_text(
        "bootstrapServers: kafka:9093\n"
        "security: {protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: gateway, "
        f"passwordFile: {password}, caFile: /ca.crt}}\n",
        encoding="utf-8",
    )

    assert kafka_settings(file) == {
        "bootstrap.servers": "kafka:9093",
        "reconnect.backoff.ms": "20",
        "reconnect.backoff.max.ms": "1000",
        "socket.nagle.disable": "True",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.crt",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "gateway",
        "sasl.password": "secret",
    }


def test_a_relays_token_is_the_line_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef0123456789abcdef\n", encoding="utf-8")

    assert relay_token(file) == "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "text", ["", "short", "0123456789abcdef 0123456789abcdef", "a" * 40 + "\n" + "b" * 40, "ä" * 40]
)
def test_a_relays_token_that_cannot_be_sent_or_is_guessed_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="--relay-token-file: "):
        relay_token(file)


def test_json_will_do(tmp_path: Path) -> None:
    file = tmp_path / "kafka.json"
    file.write_text('{"bootstrapServers": "kafka:9092"}', encoding="utf-8")

    assert kafka_settings(file)["bootstrap.servers"] == "kafka:9092"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InputError, "one document"),
        ("a: 1\n---\nb: 2\n", InputError, "one document"),
        ("bootstrap.servers: kafka:9092\n", InvalidDocument, "bootstrapServers"),
        (
            "bootstrapServers: kafka:9092\nsecurity: {protocol: SASL_SSL, mechanism: PLAIN, username: u, "
            "passwordFile: /not/there}\n",
            InputError,
            "passwordFile: /not/there cannot be read",
        ),
    ],
    ids=["empty", "two documents", "other words", "no password"],
)
def test_a_login_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    file = tmp_path / "kafka.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(error, match=message):
        kafka_settings(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "8080"], '--listen takes HOST:PORT, such as 0.0.0.0:8080, not "8080"'),
        (["--user-header", "X-User"], "go together: give all, or none"),
        (
            ["--jobs-topic", "shop.jobs"],
            "takes a name that no DelayTopic can have, such as delaytopic.gateway.jobs.east",
        ),
        (["--kubeconfig", "{config}"], "cannot log in to Kubernetes"),
    ],
)
def test_options_that_cannot_be_used_end_it_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    config = tmp_path / "kafka.yaml"
    config.write_text("bootstrapServers: kafka:9092\n", encoding="utf-8")
    given = [each.format(config=config) for each in options]

    code = run(["--kafka-config", str(config), *given])

    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2
    assert message in line
