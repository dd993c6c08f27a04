"""Tests of what the `audit` commands make of files and options."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]

from delaytopic_api import Duration, Percent, Settings
from delaytopic_api.errors import InvalidDocument
from delaytopic_audit.audit import Audited
from delaytopic_audit.errors import LedgerError, SparkMissingError
from delaytopic_audit.model import Exclusion, Threshold
from delaytopic_audit.runtime.executor_pods import ExecutorPods
from delaytopic_cli.__main__ import cli, run
from delaytopic_cli.audit.commands import has_ended
from delaytopic_cli.audit.documents import audited_topics, executors_of, kafka_of
from delaytopic_cli.audit.options import rules_of
from delaytopic_process.command_line import INTERRUPTED
from delaytopic_process.errors import InputError
from delaytopic_process.waiting import wait_until

TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: %s, namespace: shop}
spec:
  source: {topic: a}
  target: {topic: b}
  slo: {lateness: 2s, objective: 99.5%%, window: 24h}
"""
RELAY = """
name: orders
namespace: shop
groupId: g
source: {topic: a}
target: {topic: b}
deadLetter: {topic: c}
schedule: {maxDelay: 1h}
precision: 1s
guarantee: ExactlyOnce
backend: {type: KafkaBuckets, id: i}
kafka: {bootstrapServers: "k:9093", security: {protocol: SSL, caFile: /ca.crt}}
kind: RelayConfig
"""


def names(file: str, name: str | None = None) -> list[str]:
    return [settings.name for settings in audited_topics(file, name)]


def test_every_delay_topic_of_a_file_is_audited_or_the_one_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders" + "---" + TOPIC % "invoices", encoding="utf-8")

    assert names(str(file)) == ["orders", "invoices"]
    assert names(str(file), "shop/invoices") == ["invoices"]
    assert names(str(file), "orders") == ["orders"]


def test_what_kubectl_lists_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [yaml.safe_load(TOPIC % name) for name in ("orders", "invoices")]
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    monkeypatch.setattr("sys.stdin", io.StringIO(listed))

    assert names("-") == ["orders", "invoices"]


def test_a_name_that_is_not_in_the_file_is_an_error_that_lists_what_is(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")

    with pytest.raises(InputError, match=r"holds no DelayTopic shop/other; it holds: shop/orders"):
        names(str(file), "shop/other")


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text("kind: List\nitems: 5\n", encoding="utf-8")

    with pytest.raises(InvalidDocument, match="items: must be a list"):
        names(str(file))
    with pytest.raises(InputError, match=r"no\.yaml cannot be read"):
        names(str(tmp_path / "no.yaml"))
    with pytest.raises(InputError, match=r"--relay-config: .*no\.yaml cannot be read"):
        kafka_of(tmp_path / "no.yaml")


def test_a_relays_configuration_says_how_to_reach_kafka(tmp_path: Path) -> None:
    file = tmp_path / "relay.yaml"
    file.write_text(RELAY, encoding="utf-8")

    kafka = kafka_of(file)

    assert (kafka.bootstrap_servers, kafka.security.ca_file) == ("k:9093", "/ca.crt")


def test_the_rules_follow_from_the_slo_and_the_options(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")
    [settings] = audited_topics(str(file), None)

    by_default = rules_of(settings, None, None, None)
    chosen = rules_of(settings, Duration("5m"), Duration("1h"), Duration("48h"))

    assert (by_default.lateness_ms, by_default.grace_ms, by_default.objective) == (2_000, 62_000, "99.5%")
    assert (by_default.window_ms, by_default.loss_horizon_ms) == (86_400_000, 86_400_000)
    assert by_default.retention_ms == 2 * 86_400_000
    assert (chosen.grace_ms, chosen.loss_horizon_ms, chosen.retention_ms) == (300_000, 3_600_000, 172_800_000)


def test_a_ledger_remembers_two_periods_of_a_calendar(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text((TOPIC % "orders").replace("24h}", "24h, calendar: Week}"), encoding="utf-8")
    [settings] = audited_topics(str(file), None)

    rules = rules_of(settings, None, None, None)

    assert (str(rules.calendar), rules.retention_ms) == ("Week", 15 * 86_400_000)


def test_a_ledger_of_periods_of_a_zone_remembers_an_hour_more_as_clocks_are_put_back(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    zoned = (TOPIC % "orders").replace("24h}", "24h, calendar: Week, timeZone: Europe/Berlin}")
    file.write_text(zoned, encoding="utf-8")
    [settings] = audited_topics(str(file), None)

    rules = rules_of(settings, None, None, None)

    assert (rules.time_zone, rules.retention_ms) == ("Europe/Berlin", 15 * 86_400_000 + 3_600_000)


def test_minutes_are_graded_by_every_threshold_a_minute_after_the_longest(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    several = "24h, thresholds: [{lateness: 100ms, objective: 99%}, {lateness: 1m, objective: 100%}]}"
    file.write_text((TOPIC % "orders").replace("24h}", several), encoding="utf-8")
    [settings] = audited_topics(str(file), None)

    rules = rules_of(settings, None, None, None)

    assert (rules.lateness_ms, rules.grace_ms) == (2_000, 120_000)
    assert rules.thresholds == [
        Threshold(name="Timely-100ms", lateness_ms=100, objective=Percent("99%")),
        Threshold(name="Timely-1m", lateness_ms=60_000, objective=Percent("100%")),
    ]


def test_exclusions_are_rules_of_the_audit_in_epoch_milliseconds(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    exclusion = "{from: 1970-01-01T01:00:00+01:00, until: 1970-01-01T00:10:00Z, reason: upgrade}"
    file.write_text((TOPIC % "orders").replace("24h}", f"24h, exclusions: [{exclusion}]}}"), encoding="utf-8")
    [settings] = audited_topics(str(file), None)

    assert rules_of(settings, None, None, None).exclusions == [Exclusion(from_ms=0, until_ms=600_000, reason="upgrade")]


def test_the_help_of_the_group_names_its_commands_and_exit_codes() -> None:
    text = CliRunner().invoke(cli, ["audit", "--help"]).output

    assert "Exit codes: 0 all objectives met, 1 one was missed, 2 could not judge." in text
    assert [line.split()[0] for line in text.split("Commands:\n")[1].splitlines()] == [
        "run",
        "report",
        "export",
    ]


@pytest.mark.parametrize("command", ["run", "report", "export"])
def test_the_help_of_each_command_has_an_example(command: str) -> None:
    assert f"delaytopic audit {command} " in CliRunner().invoke(cli, ["audit", command, "--help"]).output


@pytest.mark.usefixtures("signals")
def test_settings_of_spark_are_given_by_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, asked = tmp_path / "topics.yaml", list[dict[str, Any]]()
    file.write_text(TOPIC % "orders", encoding="utf-8")

    def without_java(**given: Any) -> None:
        asked.append(given)
        raise SparkMissingError("no Java")

    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", without_java)
    command = ["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet", "--master", "k8s://https://a"]

    assert run([*command, "--conf", "spark.executor.instances=4", "--conf", "spark.hadoop.fs.s3a.endpoint=b=c"]) == 2
    assert asked[0]["conf"] == {"spark.executor.instances": "4", "spark.hadoop.fs.s3a.endpoint": "b=c"}
    assert asked[0]["master"] == "k8s://https://a"
    assert run([*command, "--conf", "spark"]) == 2


@pytest.mark.usefixtures("signals")
def test_a_delay_topic_without_a_verdict_is_no_matter_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders" + "---" + TOPIC % "invoices", encoding="utf-8")

    def failing(settings: Settings) -> None:
        raise LedgerError(f"no ledger of {settings.name}")

    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", lambda **_: None)
    monkeypatch.setattr("delaytopic_cli.audit.commands.Audit", lambda _spark, audited, *_: StandIn(audited, failing))

    assert run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: shop/orders: no ledger of orders",
        "error: shop/invoices: no ledger of invoices",
    ]


@pytest.mark.usefixtures("signals")
def test_an_audit_that_goes_on_survives_runs_that_fail_and_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, waits = tmp_path / "topics.yaml", list[float]()
    file.write_text(TOPIC % "orders", encoding="utf-8")

    def failing(*_given: object) -> None:
        raise LedgerError(f"no ledger at run {len(waits)}")

    def waiting(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", lambda **_: None)
    monkeypatch.setattr("delaytopic_cli.audit.commands.has_ended", lambda _: False)
    monkeypatch.setattr("delaytopic_cli.audit.commands.Audit", failing)
    monkeypatch.setattr("delaytopic_cli.audit.commands.sleep", waiting)

    code = run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet", "--every", "1m"])

    assert code == INTERRUPTED
    assert [50 < seconds <= 60 for seconds in waits] == [True, True]
    assert capsys.readouterr().err.splitlines()[:2] == [
        "error: shop/orders: no ledger at run 0",
        "error: shop/orders: no ledger at run 1",
    ]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--every", "1m", "--restart"], "--restart begins anew once: run it without --every first"),
        (["--every", "999ms"], "--every: 999ms is less than 1s"),
        (["--serve", "8080"], "--serve takes HOST:PORT, such as 0.0.0.0:8080"),
        (["--every", "1m", "--serve", "127.0.0.1:0"], "--serve is for an audit that ends: leave out --every"),
    ],
)
def test_an_audit_does_not_go_on_with_every_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")

    assert run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", *options]) == 2
    assert why in capsys.readouterr().err


class StandIn:
    """Stands in for an audit, of which each DelayTopic has the result that a function has, or raises."""

    def __init__(self, audited: Sequence[Audited], audit: Callable[[Settings], object]) -> None:
        self.audited = audited
        self.audit = audit

    def run(self, _now_ms: int, _progress: object) -> dict[str, object]:
        """Return the results by name."""
        results = dict[str, object]()
        for each in self.audited:
            try:
                results[each.name] = self.audit(each.settings)
            except LedgerError as error:
                results[each.name] = error
        return results

    def done(self) -> None:
        """Do nothing."""


class Service:
    """Stands in for Spark, audits and waiting of an audit that goes on, which ends after so many rounds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rounds: int, audit: Callable[[Settings], object]) -> None:
        self.rounds = rounds
        self.has_spark = True
        self.between: Callable[[], object] = lambda: None
        for name, instead in {
            "spark_session": lambda **_: None,
            "has_ended": lambda _: not self.has_spark,
            "Audit": lambda _spark, audited, *_: StandIn(audited, audit),
            "sleep": self.wait,
        }.items():
            monkeypatch.setattr(f"delaytopic_cli.audit.commands.{name}", instead)

    def wait(self, _seconds: float) -> None:
        """Do what is to be done between two rounds, or end as after Ctrl-C."""
        self.between()
        self.rounds -= 1
        if self.rounds == 0:
            raise KeyboardInterrupt

    def run(self, file: Path | str, *options: str) -> int:
        """Run the command."""
        return run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--every", "1m", *options])


def has_a_bug(settings: Settings) -> None:
    if settings.name == "orders":
        raise KeyError("of two\nlines")
    raise LedgerError("no ledger")


@pytest.mark.usefixtures("signals")
def test_a_bug_in_an_audit_does_not_end_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders" + "---" + TOPIC % "invoices", encoding="utf-8")

    code = Service(monkeypatch, 2, has_a_bug).run(file, "--quiet")

    assert code == INTERRUPTED
    assert capsys.readouterr().err.splitlines()[:4] == 2 * [
        "error: shop/orders: KeyError: 'of two\\nlines'",
        "error: shop/invoices: KeyError: 'of two\\nlines'",
    ]


@pytest.mark.usefixtures("signals")
def test_the_traceback_of_a_bug_is_shown_unless_that_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")

    Service(monkeypatch, 1, has_a_bug).run(file)

    said = capsys.readouterr().err
    assert said.count("Traceback (most recent call last):") == 1
    assert "error: shop/orders: KeyError: 'of two\\nlines'" in said.splitlines()


@pytest.mark.usefixtures("signals")
def test_a_bug_in_an_audit_that_does_not_go_on_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")
    Service(monkeypatch, 1, has_a_bug)
    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})

    with pytest.raises(KeyError, match="of two"):
        run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet"])


@pytest.mark.usefixtures("signals")
def test_a_service_ends_when_its_spark_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")
    service = Service(monkeypatch, 2, has_a_bug)
    service.has_spark = False

    code = service.run(file, "--quiet")

    assert (code, service.rounds) == (2, 2)
    assert capsys.readouterr().err.splitlines() == [
        "error: shop/orders: KeyError: 'of two\\nlines'",
        "error: Spark has ended: only a new process starts it again",
    ]


class EndedContext:
    """Spark's context once it was stopped, or once Java is gone."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def sparkContext(self) -> EndedContext:  # noqa: N802  # PySpark's name
        """The context of the session."""
        return self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802  # PySpark's name
        """The words of a context while it is there."""
        raise self.error


@pytest.mark.parametrize(
    "error", [Py4JError("a stopped SparkContext"), ConnectionRefusedError(), Py4JNetworkError("no answer")]
)
def test_spark_has_ended_when_it_was_stopped_or_its_java_does_not_answer(error: Exception) -> None:
    session: Any = EndedContext(error)

    assert has_ended(session)


class Reader(Thread):
    """Reads the verdicts of an audit once they are all there, and says that it has kept them."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__()
        self._page = f"http://127.0.0.1:{port}/verdicts"
        self._count = count
        self.read: list[str] = []

    def run(self) -> None:
        """Read until so many are there."""
        assert wait_until(self._has_read_all, timeout_seconds=60)

    def _has_read_all(self) -> bool:
        with urlopen(self._page, timeout=60) as answer:
            *documents, last = [json.loads(line) for line in answer]
        if len(documents) < self._count:
            return False
        self.read = [f"{each['delayTopic']}: {each['condition']['message']}" for each in documents]
        with urlopen(f"{self._page}?after={last['after']}&kept={last['after']}", timeout=60):
            return True


@pytest.mark.usefixtures("signals")
def test_an_audit_serves_a_verdict_on_each_delay_topic_until_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = list[Reader]()

    def begin(line: str) -> None:
        if line.startswith("serving"):
            readers.append(Reader(int(line.rsplit(maxsplit=1)[-1]), count=2))
            readers[0].start()

    monkeypatch.setattr("delaytopic_cli.audit.commands.show_progress", begin)
    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})
    for name in ("orders", "invoices"):
        (tmp_path / f"{name}.yaml").write_text(TOPIC % name, encoding="utf-8")
    Service(monkeypatch, 1, has_a_bug)

    code = run(["audit", "run", "-f", str(tmp_path), "-b", "127.0.0.1:1", "--serve", "127.0.0.1:0"])

    (reader,) = readers
    reader.join()
    bug = "This audit could not judge. KeyError: 'of two\\nlines'"
    assert (code, reader.read) == (2, [f"shop/invoices: {bug}", f"shop/orders: {bug}"])


@pytest.mark.parametrize(
    ("options", "codes", "expected"),
    [
        ([], [0, 2], 2),
        (["--exit-zero"], [0, 2], 0),
        (["--exit-zero"], [2, 2], 2),
        ([], [0, 1], 1),
    ],
    ids=["one has none", "one has none, and that is told", "none has one", "one missed"],
)
@pytest.mark.usefixtures("signals")
def test_a_job_that_gave_a_verdict_did_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], codes: list[int], expected: int
) -> None:
    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", lambda **_: None)
    monkeypatch.setattr("delaytopic_cli.audit.commands._audit", lambda *_: codes)
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")

    assert run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet", *options]) == expected


@pytest.mark.usefixtures("signals")
def test_a_service_waits_for_the_first_delay_topic_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[str]()

    def audit(settings: Settings) -> None:
        audited.append(settings.name)
        raise LedgerError("no ledger")

    service = Service(monkeypatch, 2, audit)
    service.between = lambda: (tmp_path / "a.yaml").write_text(TOPIC % "orders", encoding="utf-8")

    assert (service.run(tmp_path, "--quiet"), audited) == (INTERRUPTED, ["orders"])


@pytest.mark.usefixtures("signals")
def test_a_service_without_delay_topics_says_why_spark_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_java(**_: Any) -> None:
        raise SparkMissingError("no Java")

    service = Service(monkeypatch, 1, has_a_bug)
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", without_java)

    assert service.run(tmp_path, "--quiet") == 2
    assert capsys.readouterr().err == "error: no Java\n"


@pytest.mark.usefixtures("signals")
def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    audited = list[str]()

    def audit(settings: Settings) -> None:
        audited.append(settings.name)
        raise LedgerError("no ledger")

    monkeypatch.setattr("sys.stdin", io.StringIO(TOPIC % "orders"))

    code = Service(monkeypatch, 2, audit).run("-", "--quiet")

    assert (code, audited) == (INTERRUPTED, ["orders", "orders"])


def test_standard_input_without_delay_topics_is_an_error_in_a_service_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    assert Service(monkeypatch, 1, has_a_bug).run("-") == 2
    assert capsys.readouterr().err == "error: - holds no DelayTopic ; it holds: none\n"


def executor_template(tmp_path: Path, text: str = "{kind: Pod}") -> Path:
    file = tmp_path / "executor.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_executor_pods_are_asked_for_by_their_template_and_number(tmp_path: Path) -> None:
    file = executor_template(tmp_path)

    assert executors_of(file, 2, 4) == ExecutorPods(str(file), {"kind": "Pod"}, 2, 4)
    assert executors_of(None, 9, 4) is None


@pytest.mark.parametrize("text", ["", "- a", "{kind: Pod}\n---\n{kind: Pod}"])
def test_a_template_of_executors_that_is_not_one_pod_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="must hold one pod"):
        executors_of(executor_template(tmp_path, text), 1, 1)


def test_no_fewer_executors_at_most_than_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--min-executors: 5 is more than --max-executors \(4\)"):
        executors_of(executor_template(tmp_path), 5, 4)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("is_in_pod", "stops"), [(True, 1), (False, 0)])
def test_a_driver_in_a_pod_removes_its_executors_before_it_ends_however_the_audit_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_pod: bool, stops: int
) -> None:
    file, session = tmp_path / "topics.yaml", StoppedSession()
    file.write_text(TOPIC % "orders", encoding="utf-8")
    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: {})
    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", lambda **_: session)
    monkeypatch.setattr("delaytopic_cli.audit.commands.Audit", lambda *_: signal.raise_signal(signal.SIGTERM))
    pods = ["--executor-pod", str(executor_template(tmp_path))] if is_in_pod else []

    code = run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet", *pods])

    assert (code, session.stops) == (INTERRUPTED, stops)


class StoppedSession:
    """Counts how often it was stopped."""

    stops = 0

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture
def signals() -> Iterator[None]:
    """Puts back what the command makes of SIGTERM."""
    usual = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, usual)


@pytest.mark.usefixtures("signals")
def test_a_run_that_is_asked_to_end_does_so_as_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(TOPIC % "orders", encoding="utf-8")
    monkeypatch.setattr("delaytopic_cli.audit.commands.check_topics", lambda *_: signal.raise_signal(signal.SIGTERM))

    assert run(["audit", "run", "-f", str(file), "-b", "127.0.0.1:1", "--quiet"]) == INTERRUPTED
