"""Options and files of `delaytopic-gateway`."""

from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_gateway.__main__ import relay_token, run
from delaytopic_process.errors import InputError


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
