"""The tests of docs/how-to/test-your-delays.md and recurring.md: their very code, run by a pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.pages import blocks
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "how-to" / "test-your-delays.md"
RECURRING = ROOT / "docs" / "how-to" / "recurring.md"
OTHERS = """
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

BUCKETS = Path(__file__).with_name("buckets.yaml")


def test_what_an_application_produces_is_seen_and_what_a_test_before_left_is_not(delay_topic):
    left = delay_topic("reminders.yaml")
    left.send("left", after="2h")
    reminders = delay_topic("reminders.yaml")
    producer = Producer({"bootstrap.servers": reminders.bootstrap_servers})
    producer.produce(reminders.source, b"tea", headers=[("deliver-after", b"1h")])
    producer.flush()
    reminders.advance(timedelta(hours=3))

    assert [(each.text, each.waited) for each in reminders.arrived()] == [("tea", timedelta(hours=1))]


def test_a_time_is_one_of_the_clock_and_a_record_after_a_move_counts_from_there(delay_topic):
    reminders = delay_topic("reminders.yaml")
    at = reminders.now + timedelta(days=1)
    reminders.send("at", at=at)
    reminders.send("after", after="25h")
    reminders.advance("23h")
    reminders.send("later", after="2h 30m")
    reminders.advance("61m")
    assert [each.text for each in reminders.arrived()] == ["at"]
    reminders.advance("89m")

    assert [each.text for each in reminders.arrived()] == ["at", "after", "later"]
    assert reminders.arrived()[0].due - at < timedelta(milliseconds=1)


def test_a_recurring_record_recurs_until_it_is_cancelled(delay_topic):
    reminders = delay_topic("reminders.yaml")
    report = reminders.recur("report")
    reminders.advance("73h")
    before = reminders.arrived()
    reminders.cancel(report)
    reminders.advance("170h")

    assert {(each.text, each.key) for each in before} == {("report", None)}
    assert reminders.arrived() == before


def test_what_recurs_by_an_earlier_test_is_none_of_a_later_one(delay_topic):
    before = delay_topic("reminders.yaml")
    before.send("ping", id="ping", every=timedelta(hours=1))
    reminders = delay_topic("reminders.yaml")
    reminders.advance("2h")
    reminders.advance("2h")

    assert (reminders.arrived(), {each.text for each in before.arrived()}) == ([], {"ping"})
    before.cancel("ping")


def test_a_recurring_record_that_is_not_in_the_file_is_named(delay_topic):
    with pytest.raises(Exception, match="the file has no RecurringRecord reports for shop/reminders; it has: report"):
        delay_topic("reminders.yaml").recur("reports")


def test_what_cannot_be_delivered_is_a_dead_letter_with_its_reason(delay_topic):
    reminders = delay_topic("reminders.yaml")
    reminders.send("never", after="9000h")

    assert [(each.text, each.reason) for each in reminders.dead_letters()] == [("never", "beyond-max-delay")]


@pytest.mark.parametrize("file", ["buckets.yaml", "fixed.yaml"])
def test_bucket_topics_and_a_fixed_delay_follow_the_clock(delay_topic, file):
    topic = delay_topic(file)
    wait = {} if file == "fixed.yaml" else {"after": "7d"}
    topic.send("first", **wait)
    topic.advance("6d")
    topic.send("second", **wait)
    topic.advance("1d")
    assert [each.text for each in topic.arrived()] == ["first"]
    topic.advance("6d")

    assert [(each.text, each.waited) for each in topic.arrived()] == [
        (name, timedelta(days=7)) for name in ("first", "second")
    ]
"""


def block(language: str) -> str:
    """Return the first block of code of a language on the page."""
    return PAGE.read_text(encoding="utf-8").split(f"```{language}\n", 1)[1].split("```", 1)[0]


def write_application(folder: Path) -> None:
    """Write a team's folder, as the pages have it, and tests of ours beside theirs."""
    recurring = [each for each in blocks(RECURRING) if each.language == "yaml"]
    declared = [block("yaml"), *(each.text for each in recurring)]
    (folder / "reminders.yaml").write_text("---\n".join(declared), encoding="utf-8")
    (folder / "test_reminders.py").write_text(block("python"), encoding="utf-8")
    tests = [each.text for each in blocks(RECURRING) if "delay_topic" in each.text]
    (folder / "test_recurring.py").write_text("\n\n".join(tests), encoding="utf-8")
    yaml = block("yaml")
    (folder / "buckets.yaml").write_text(
        f"{yaml.replace('reminders', 'buckets')}  backend:\n    type: KafkaBuckets\n", encoding="utf-8"
    )
    (folder / "fixed.yaml").write_text(
        f"{yaml.replace('reminders', 'fixed')}  schedule:\n    fixedDelay: 168h\n", encoding="utf-8"
    )
    (folder / "test_others.py").write_text(OTHERS, encoding="utf-8")


class Ran(NamedTuple):
    """A run of all tests of the folder, with one Kafka, one Redis and three relays: seconds, and tests by outcome."""

    seconds: float
    outcomes: Counter[tuple[str, str]]
    """File and outcome of each test."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("application")
    write_application(folder)
    started_s = time.monotonic()
    said = run_pytest(folder)
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (\w+)\.py", said, re.MULTILINE)
    return Ran(time.monotonic() - started_s, Counter((file, outcome) for outcome, file in found))


def run_pytest(folder: Path) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--rootdir",
        str(folder),
    ]
    # As in a pod of a CI system: it is on a cluster, and the relays of its tests are not.
    environment = {**os.environ, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    done = subprocess.run(
        [*command, str(folder)], cwd=folder, check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.takes_long("a Kafka and a Redis of its own, as the page has them, and three relays")
def test_the_tests_of_both_pages_pass(ran: Ran, record_property: Callable[[str, object], None]) -> None:
    record_property("the how-to's tests and ours, with servers, s", round(ran.seconds, 1))

    assert {each: ran.outcomes[each] for each in ran.outcomes if each[0] != "test_others"} == {
        ("test_reminders", "PASSED"): 1,
        ("test_recurring", "PASSED"): 2,
    }


def test_what_the_page_says_of_the_fixture_holds(ran: Ran) -> None:
    assert {each: ran.outcomes[each] for each in ran.outcomes if each[0] == "test_others"} == {
        ("test_others", "PASSED"): 8
    }
