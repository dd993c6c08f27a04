"""The tests of docs/how-to/test-your-delays.md and recurring.md: their very code, run by a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A team's folder, as the page has it."""
    recurring = [each for each in blocks(RECURRING) if each.language == "yaml"]
    declared = [block("yaml"), *(each.text for each in recurring)]
    (tmp_path / "reminders.yaml").write_text("---\n".join(declared), encoding="utf-8")
    (tmp_path / "test_reminders.py").write_text(block("python"), encoding="utf-8")
    tests = [each.text for each in blocks(RECURRING) if "delay_topic" in each.text]
    (tmp_path / "test_recurring.py").write_text("\n\n".join(tests), encoding="utf-8")
    return tmp_path


Property = Callable[[str, object], None]


def run_pytest(folder: Path) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
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


@pytest.mark.takes_long("a Kafka and a Redis of its own, as the page has them, and their relay")
def test_the_tests_of_both_pages_pass(application: Path, record_property: Property) -> None:
    started_s = time.monotonic()

    said = run_pytest(application)

    record_property("the how-to's test, with servers, s", round(time.monotonic() - started_s, 1))
    assert "3 passed" in said


@pytest.mark.takes_long("a Kafka and a Redis of its own, and three relays")
def test_what_the_page_says_of_the_fixture_holds(application: Path) -> None:
    yaml = block("yaml")
    (application / "buckets.yaml").write_text(
        f"{yaml.replace('reminders', 'buckets')}  backend:\n    type: KafkaBuckets\n", encoding="utf-8"
    )
    (application / "fixed.yaml").write_text(
        f"{yaml.replace('reminders', 'fixed')}  schedule:\n    fixedDelay: 168h\n", encoding="utf-8"
    )
    (application / "test_recurring.py").unlink()
    (application / "test_reminders.py").write_text(OTHERS, encoding="utf-8")

    assert "8 passed" in run_pytest(application)
