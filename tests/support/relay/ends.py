"""Ends and waits of a relay, as an operator of it would see them."""

from __future__ import annotations

from typing import Any
from urllib.error import HTTPError, URLError

from tests.support.relay.process import RelayProcess, wait_for


def exit_code(relay: RelayProcess, timeout_s: float = 30) -> int:
    """Wait until it has ended by itself."""
    return relay.child.wait(timeout_s)


def lines_of(relay: RelayProcess, *levels: str) -> list[dict[str, Any]]:
    """Its log lines of these levels."""
    return [line for line in relay.log_lines() if line["level"] in levels]


def last_words(relay: RelayProcess) -> str:
    """The reason in the one critical line of a relay that gave up; and everything it wrote is a log line."""
    text = relay.log_file.read_text(encoding="utf-8")
    assert all(line.startswith("{") for line in text.splitlines()), f"something else than log lines:\n{text}"
    lines = lines_of(relay, "critical")
    assert [line["event"] for line in lines] == ["misconfigured"], text
    assert relay.log_lines()[-1] == lines[0], "nothing comes after it"
    return str(lines[0]["reason"])


def page(relay: RelayProcess, path: str) -> tuple[int, str]:
    """One of its pages, whatever its status."""
    try:
        return 200, relay.get(path)
    except HTTPError as answer:
        with answer:
            return answer.code, answer.read().decode()


def wait_until_it_waits(relay: RelayProcess, what: str, timeout_s: float = 60) -> str:
    """Wait until `/readyz` says that it waits for this; the whole answer."""
    answers: list[str] = []

    def says_so() -> bool:
        try:
            code, text = page(relay, "/readyz")
        except (URLError, ConnectionError, TimeoutError):
            return False
        answers.append(f"{code} {text}")
        return code == 503 and what in text

    wait_for(says_so, lambda: f"/readyz said {answers[-1:]}\n{relay.log_file.read_text()[-2_000:]}", timeout_s)
    return answers[-1]
