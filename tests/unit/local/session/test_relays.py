from __future__ import annotations

import json
from pathlib import Path

import pytest

from delaytopic_api import RelayConfig
from delaytopic_local.errors import RelayError
from delaytopic_local.session.relays import MOST_SHORT_LIVES, RelayProcess, Supervisor


class ScriptedRelay(RelayProcess):
    """A relay whose process ends as the test says; the supervisor decides on nothing else."""

    def __init__(self, directory: Path) -> None:
        super().__init__("shop.reminders-1", RELAY, directory)
        self.starts = 0
        self.code: int | None = None

    @property
    def exit_code(self) -> int | None:
        return self.code

    def is_running(self) -> bool:
        return self.starts > 0 and self.code is None

    def start(self) -> None:
        self.starts += 1
        self.code = None


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


RELAY = RelayConfig.model_validate(
    {
        "name": "reminders",
        "namespace": "shop",
        "groupId": "g",
        "source": {"topic": "a"},
        "target": {"topic": "b"},
        "deadLetter": {"topic": "c"},
        "schedule": {"maxDelay": "1h"},
        "precision": "1s",
        "guarantee": "ExactlyOnce",
        "backend": {"type": "KafkaBuckets", "id": "g"},
        "kafka": {"bootstrapServers": "127.0.0.1:1"},
    }
)


@pytest.fixture
def relay(tmp_path: Path) -> ScriptedRelay:
    return ScriptedRelay(tmp_path)


def supervised(relay: ScriptedRelay, clock: Clock) -> tuple[Supervisor, list[str]]:
    lines: list[str] = []
    supervisor = Supervisor([relay], progress=lines.append, clock=clock)
    supervisor.start()
    return supervisor, lines


def test_a_relay_that_worked_for_a_while_is_started_again_at_once(relay: ScriptedRelay) -> None:
    clock = Clock()
    supervisor, lines = supervised(relay, clock)
    clock.now_s = 60.0
    relay.code = -9

    supervisor.tick()
    supervisor.tick()

    assert relay.starts == 2
    assert lines == [
        "relay shop.reminders-1 was ended by signal 9; starting it again",
        "starting relay shop.reminders-1 again",
    ]


def test_a_running_relay_is_left_alone(relay: ScriptedRelay) -> None:
    supervisor, lines = supervised(relay, Clock())

    supervisor.tick()

    assert (relay.starts, lines) == (1, [])


def test_a_relay_that_ends_soon_is_given_longer_and_longer_pauses(relay: ScriptedRelay) -> None:
    clock = Clock()
    supervisor, lines = supervised(relay, clock)
    for second in range(12):
        clock.now_s = float(second)
        relay.code = 1 if relay.starts < 4 else None
        supervisor.tick()

    assert [line for line in lines if "ended" in line] == [
        f"relay shop.reminders-1 ended with exit code 1; starting it again in {pause} s" for pause in (1, 2, 4)
    ]


def test_a_relay_that_never_gets_going_ends_the_run(relay: ScriptedRelay) -> None:
    clock = Clock()
    supervisor, _ = supervised(relay, clock)

    def keep_failing() -> None:
        for second in range(100):
            clock.now_s = float(second)
            relay.code = 1
            supervisor.tick()

    with pytest.raises(RelayError, match=f"{MOST_SHORT_LIVES} times in a row soon after its start"):
        keep_failing()


def test_a_misconfigured_relay_ends_the_run_with_its_reason(relay: ScriptedRelay) -> None:
    supervisor, _ = supervised(relay, Clock())
    words = [{"event": "http listening", "port": 1}, {"event": "misconfigured", "reason": "source.topic: is wrong"}]
    relay.log_file.write_text("\n".join(["not json", *map(json.dumps, words)]), encoding="utf-8")
    relay.code = 2

    with pytest.raises(RelayError, match=r"relay shop\.reminders-1 cannot run like this: source\.topic: is wrong"):
        supervisor.tick()


def test_without_a_reason_the_last_words_are_the_end_of_the_log(relay: ScriptedRelay) -> None:
    relay.log_file.write_text("Traceback\nValueError: oops\n", encoding="utf-8")

    assert relay.last_words() == "Traceback\nValueError: oops"


WARNING = {
    "event": "waiting",
    "reason": "Kafka does not answer",
    "level": "warning",
    "timestamp": "1970-01-01T00:01:40Z",
}
CLIENT = {
    "event": "kafka client",
    "text": "FAIL [vm-1#consumer-2] [thrd:GroupCoordinator]: GroupCoordinator: h:9: Timed out",
    "level": "warning",
    "timestamp": "1970-01-01T00:01:40Z",
}
INFO = {"event": "started", "level": "info", "timestamp": "1970-01-01T00:01:41Z"}


@pytest.mark.parametrize(
    ("lines", "now_s", "trouble"),
    [
        ([], 100.0, None),
        ([INFO, WARNING], 100.0, "waiting: Kafka does not answer"),
        ([INFO, WARNING], 111.0, "waiting: Kafka does not answer"),
        ([INFO, WARNING], 113.0, None),
        ([WARNING, INFO], 101.0, None),
        ([CLIENT], 101.0, "Kafka client: GroupCoordinator: h:9: Timed out"),
        ([{**WARNING, "timestamp": "soon"}], 101.0, None),
    ],
)
def test_what_a_relay_complained_of_last_is_its_trouble_for_a_while(
    relay: ScriptedRelay, lines: list[dict[str, str]], now_s: float, trouble: str | None
) -> None:
    relay.log_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    assert relay.trouble(now_s) == trouble
