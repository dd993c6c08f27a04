"""Log lines: one JSON object each, those of libraries, too, and never a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from delaytopic_operator.runtime.logs import configure_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    text = io.StringIO()
    configure_logs(stream=text)
    yield text
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_of_libraries_have_the_same_form(stream: io.StringIO) -> None:
    logging.getLogger("kopf.watching").info("one of a thousand")
    try:
        raise ValueError("broken")
    except ValueError as error:
        logging.getLogger("kopf.watching").exception("watch of %s failed: %s", "pods", error)

    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("watch of pods failed: broken", "error")
    assert (line["library"], "ValueError: broken" in str(line["exception"])) == ("kopf.watching", True)


def test_secrets_are_left_out(stream: io.StringIO) -> None:
    structlog.get_logger().info(
        "x", password="p", token="t", url="redis://u:p@host/0", header="Bearer abc.def", secretName="kafka", lag_ms=3
    )

    (line,) = lines(stream)
    assert "p@" not in stream.getvalue()
    assert "abc.def" not in stream.getvalue()
    assert (line["password"], line["token"], line["secretName"], line["lag_ms"]) == (
        "<redacted>", "<redacted>", "kafka", 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("debug", ["debug", "info", "a library's info", "warning", "a library's warning"]),
        ("info", ["info", "warning", "a library's warning"]),
        ("warning", ["warning", "a library's warning"]),
        ("error", []),
    ],
)
def test_a_level_is_that_of_the_operator_and_of_its_libraries(stream: io.StringIO, level: str, said: list[str]) -> None:
    configure_logs(level, stream)

    for name in ("debug", "info", "warning"):
        structlog.get_logger().log(logging.getLevelNamesMapping()[name.upper()], name)
        logging.getLogger("kopf").log(logging.getLevelNamesMapping()[name.upper()], f"a library's {name}")

    assert [line["event"] for line in lines(stream)] == said
