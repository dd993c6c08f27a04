"""The rounds of audits that go on, without Spark and without waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from delaytopic_api import Duration, Settings
from delaytopic_cli.audit.documents import audited_topics, full_name
from delaytopic_cli.audit.rounds import audit_in_rounds
from delaytopic_process.errors import InputError

TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: %s, namespace: shop}
spec: {source: {topic: a}, target: {topic: b}}
---
"""


class Ended(Exception):
    """The test has seen enough."""


class Rounds:
    """Audits that take so many seconds each round, of a file that a test may change while they wait."""

    def __init__(self, file: Path, takes_s: float = 1.0) -> None:
        self.file = file
        self.takes_s = takes_s
        self.now_s = 100.0
        self.audited: list[list[str]] = []
        self.waits: list[float] = []

    def write(self, *names: str) -> None:
        """Write DelayTopics of these names."""
        self.file.write_text("".join(TOPIC % name for name in names), encoding="utf-8")

    def run(self, *between: Callable[[], object]) -> None:
        """Audit in rounds, and do one of these between two of them."""
        steps = iter(between)

        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            self.now_s += seconds
            step = next(steps, None)
            if step is None:
                raise Ended
            step()

        with pytest.raises(Ended):
            audit_in_rounds(
                Duration("1m"),
                self.read(),
                read=self.read,
                audit_all=self.audit,
                clock_s=lambda: self.now_s,
                sleep=wait,
            )

    def read(self) -> list[Settings]:
        """Return what is in the file."""
        return audited_topics(str(self.file), None, may_be_none=True)

    def audit(self, topics: Sequence[Settings]) -> None:
        """Note the names."""
        self.audited.append([full_name(settings) for settings in topics])
        self.now_s += self.takes_s


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    made = Rounds(tmp_path / "topics.yaml")
    made.write("orders")
    return made


def test_delay_topics_come_and_go_from_round_to_round(rounds: Rounds) -> None:
    rounds.run(lambda: rounds.write("orders", "invoices"), lambda: rounds.write("letters"))

    assert rounds.audited == [["shop/orders"], ["shop/orders", "shop/invoices"], ["shop/letters"]]


def test_a_round_may_have_nothing_to_audit(rounds: Rounds) -> None:
    rounds.run(rounds.write, lambda: rounds.write("orders"))

    assert rounds.audited == [["shop/orders"], [], ["shop/orders"]]


def test_while_a_file_cannot_be_used_the_delay_topics_of_before_are_audited(
    rounds: Rounds, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil() -> None:
        rounds.file.write_text("kind: DelayTopik\n", encoding="utf-8")

    rounds.run(spoil, rounds.file.unlink, lambda: rounds.write("letters"))

    file = rounds.file
    assert rounds.audited == [["shop/orders"], ["shop/orders"], ["shop/orders"], ["shop/letters"]]
    assert capsys.readouterr().err.splitlines() == [
        f'error: {file}: document 1: kind: "DelayTopik" is not known here; allowed: DelayTopic, DelayClass, '
        "RecurringRecord",
        f"error: {file} cannot be read: [Errno 2] No such file or directory: '{file}'",
    ]


def test_a_file_that_cannot_be_read_at_first_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml cannot be read"):
        Rounds(tmp_path / "none.yaml").run()


@pytest.mark.parametrize(("takes_s", "waits"), [(1.0, [59.0, 59.0]), (60.0, [0.0, 0.0]), (90.0, [0.0, 0.0])])
def test_rounds_begin_an_interval_apart_or_at_once_after_a_longer_one(
    rounds: Rounds, takes_s: float, waits: list[float]
) -> None:
    rounds.takes_s = takes_s

    rounds.run(lambda: None)

    assert rounds.waits == waits
