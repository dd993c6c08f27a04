"""`delaytopic init` and `validate`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from delaytopic_cli.__main__ import run

HEAD = "apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {name: %s, namespace: shop}\n"
CLASS = (
    "apiVersion: delaytopic.dev/v1beta1\nkind: DelayClass\nmetadata: {name: gold}\n"
    "spec: {connection: {bootstrapServers: 'k:9092'}, backend: {type: KafkaBuckets},\n"
    "  access: {sourceTopics: ['shop.*'], targetTopics: ['shop.*']}}\n"
)


def write(tmp_path: Path, text: str, name: str = "topics.yaml") -> str:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_what_init_writes_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "new.yaml")

    assert (run(["init", "-o", file]), run(["validate", "-f", file])) == (0, 0)
    assert capsys.readouterr().out == (f"wrote {file}; try it: delaytopic local -f {file}\n1 document is valid\n")


@pytest.mark.parametrize("kind", ["DelayClass", "RecurringRecord"])
def test_what_init_writes_of_another_kind_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    file = str(tmp_path / "of_kind.yaml")

    assert (run(["init", "--kind", kind, "-o", file]), run(["validate", "-f", file])) == (0, 0)
    assert capsys.readouterr().out == (f"wrote {file}; check it: delaytopic validate -f {file}\n1 document is valid\n")


def test_topics_that_kafka_takes_for_one_are_refused_across_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path, HEAD % "one" + "spec: {source: {topic: shop.a}, target: {topic: shop.b}}\n", "one.yaml")
    two = write(tmp_path, HEAD % "two" + "spec: {source: {topic: shop.c}, target: {topic: shop_a}}\n", "two.yaml")

    assert run(["validate", "-f", one, "-f", two]) == 2
    assert capsys.readouterr().err == (
        "error: DelayTopic shop/two: spec.target.topic: is shop_a, and differs from shop.a of shop/one in dots and "
        "underscores only: Kafka takes one of the two\n"
    )


def test_topics_that_kafka_takes_for_one_may_be_on_two_kafkas(tmp_path: Path) -> None:
    one = HEAD % "one" + "spec: {delayClassName: gold, source: {topic: shop.a}, target: {topic: shop.b}}\n"
    two = HEAD % "two" + "spec: {delayClassName: iron, source: {topic: shop_a}, target: {topic: shop_b}}\n"

    assert run(["validate", "-f", write(tmp_path, f"{one}---\n{two}")]) == 0


RECURRING = (
    "apiVersion: delaytopic.dev/v1beta1\nkind: RecurringRecord\nmetadata: {name: report, namespace: shop}\n"
    "spec: {delayTopic: reminders, %s}\n"
)
TAKES_IDS = HEAD % "reminders" + "spec: {source: {topic: a}, target: {topic: b}, schedule: {ids: ByHeader, %s}}\n"


def test_a_recurring_record_is_valid_beside_a_delay_topic_that_delivers_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = write(tmp_path, TAKES_IDS % "maxDelay: 80h", "topic.yaml")
    record = write(tmp_path, RECURRING % "cron: 0 9 * * mon-fri", "record.yaml")

    assert (run(["validate", "-f", record]), run(["validate", "-f", record, "-f", topic])) == (0, 0)
    assert capsys.readouterr().out == "1 document is valid\n2 documents are valid\n"


def test_a_recurring_record_is_refused_beside_a_delay_topic_that_takes_no_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = (TAKES_IDS % "maxDelay: 80h").replace("ByHeader", "Disabled")

    assert run(["validate", "-f", write(tmp_path, f"{topic}---\n{RECURRING % 'every: 1h'}")]) == 2
    assert capsys.readouterr().err == (
        "error: RecurringRecord shop/report: spec.delayTopic: the DelayTopic shop/reminders takes no ids by header: it "
        "needs the native dialect with schedule.ids: ByHeader\n"
    )


def test_a_recurring_record_is_refused_whose_times_are_further_apart_than_its_delay_topic_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, f"{TAKES_IDS % 'maxDelay: 1h'}---\n{RECURRING % 'every: 2h'}")

    assert run(["validate", "-f", file]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: RecurringRecord shop/report: spec.every: its time 2")
    assert said.endswith("; the DelayTopic shop/reminders allows at most 1h (schedule.maxDelay)\n")


def test_init_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "mine")

    assert run(["init", "-o", file]) == 2
    assert capsys.readouterr().err == f"error: --output: {file} exists already; choose another name\n"
    assert Path(file).read_text(encoding="utf-8") == "mine"


def test_init_prints_to_a_pipe_what_it_would_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["init", "-o", str(tmp_path / "new.yaml")])
    capsys.readouterr()

    run(["init"])

    assert capsys.readouterr().out == (tmp_path / "new.yaml").read_text(encoding="utf-8")


def test_every_problem_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD % "a" + "spec: {source: {topic: s}, target: {topic: t}, precision: soon, schedule: {maxDelay: 90d}}\n"
    file = write(tmp_path, text)

    assert run(["validate", "-f", file]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": spec.")[2].partition(":")[0] for line in lines] == ["schedule.maxDelay", "precision"]


def test_rules_between_fields_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HEAD % "a" + "spec: {source: {topic: s}, target: {topic: s}}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))

    assert run(["validate", "-f", "-", "-o", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["valid"], document["documents"]) == (False, 0)
    assert document["problems"][0].startswith("standard input: DelayTopic shop/a: spec")


def test_a_class_among_the_files_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD % "a" + "spec: {delayClassName: gold, source: {topic: post.delayed}, target: {topic: shop.t}}\n"
    topic, of_class = write(tmp_path, text), write(tmp_path, CLASS, "class.yaml")

    assert (run(["validate", "-f", topic]), run(["validate", "-f", topic, "-f", of_class])) == (0, 2)
    assert "spec.source.topic" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "-f", "nowhere.yaml"]) == 2
    assert capsys.readouterr().err.startswith("error: --file: nowhere.yaml cannot be read: ")
