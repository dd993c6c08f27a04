"""The report, and what is made of it: a page, metrics, a status."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.slo.reference import tables
from tests.slo.sample_report import NOW_MS, sample_report

from delaytopic_api.documents import Condition, ConditionStatus, DelayTopicStatus
from delaytopic_slo.errors import SettingsError, SloError
from delaytopic_slo.model.report import Report, Verdict
from delaytopic_slo.outputs import push_metrics, write_outputs
from delaytopic_slo.report.html.page import html_page
from delaytopic_slo.report.prometheus import HELP, prometheus_text
from delaytopic_slo.report.reporting import no_verdict
from delaytopic_slo.report.status import slo_condition, slo_status

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "slo-report.md"


class Balanced(HTMLParser):
    """Fails where tags do not nest."""

    VOID = frozenset({"meta", "rect", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_report_says_missed_and_by_what() -> None:
    report = sample_report()

    assert report.verdict is Verdict.MISSED
    assert [(str(each.name), str(each.verdict)) for each in report.objectives] == [
        *(("Timely", "Missed"), ("Complete", "Missed"), ("Unique", "Missed"), ("NotEarly", "Missed")),
    ]
    assert report.sentence.startswith("Timely: 1,395 arrived more than 1s late, 3 did not arrive; Complete: 3 lost; ")
    assert [(each.finding, each.records, each.provisional) for each in report.findings] == [
        *(("lost", 3, 2), ("duplicated", 2, 0), ("early", 1, 0), ("late", 1395, 0), ("cancelled", 7200, 0)),
    ]
    assert report.worst_minutes[0].counts.lost == 3


def test_a_clean_report_says_met() -> None:
    report = sample_report(faulty=False)

    assert report.verdict is Verdict.MET
    assert report.sentence.endswith("every one arrived or is accounted for, once, and on time as agreed.")


def test_a_report_survives_its_json() -> None:
    report = sample_report()

    assert Report.model_validate_json(report.model_dump_json(by_alias=True, exclude_none=True)) == report


def test_clocks_that_disagree_are_named_in_a_note() -> None:
    notes = sample_report().notes

    assert notes[0] == (
        "Clocks disagree: the broker of shop.orders partition 2 is at least 8 ms behind a relay's clock."
        " A record counts as early only beyond that."
    )


@pytest.mark.parametrize("faulty", [True, False])
def test_the_page_is_whole_and_loads_nothing(faulty: bool) -> None:
    page = html_page(sample_report(faulty=faulty))

    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.addresses == []
    assert "<script" not in page
    assert "url(" not in page
    assert ("Objectives missed" in page) is faulty


def test_the_page_of_an_audit_without_a_verdict_says_why_and_escapes_what_others_wrote() -> None:
    page = html_page(no_verdict("shop/<b>", ["the topic <script>x</script> is gone"], NOW_MS))

    assert "Could not judge" in page
    assert "the topic &lt;script&gt;x&lt;/script&gt; is gone" in page
    assert "<script" not in page


def test_the_page_escapes_names_and_reasons_wherever_they_stand() -> None:
    hostile = "<script>'x'</script>\"&"
    report = sample_report()
    listed = (
        report.findings[0]
        .listed[0]
        .model_copy(update={"topic": hostile, "at_partition": 0, "at_offset": 1, "reason": hostile})
    )
    found = report.findings[0].model_copy(update={"listed": [listed]})
    texts = {"delay_topic": hostile, "source": hostile, "target": hostile, "sentence": hostile, "notes": [hostile]}

    page = html_page(report.model_copy(update={**texts, "reasons": [hostile], "findings": [found]}))

    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 10


def test_metrics_are_prometheus_text() -> None:
    families = list(text_string_to_metric_families(prometheus_text(sample_report())))

    samples = {(s.name, *_own(s.labels).values()): s.value for family in families for s in family.samples}
    assert {family.name for family in families} == {f"delaytopic_slo_{name}" for name in HELP}
    assert {family.type for family in families} == {"gauge"}
    assert samples[("delaytopic_slo_verdict",)] == 0
    assert samples["delaytopic_slo_records", "lost"] == 3


def test_every_metric_names_its_delay_topic_as_those_of_relays_do() -> None:
    families = list(text_string_to_metric_families(prometheus_text(sample_report())))

    names = {(s.labels["delaytopic_namespace"], s.labels["delaytopic_name"]) for f in families for s in f.samples}
    assert names == {("shop", "order-reminders")}


def test_metrics_without_a_verdict_say_only_that() -> None:
    families = list(text_string_to_metric_families(prometheus_text(no_verdict("shop/orders", ["gone"], NOW_MS))))

    labels = {"delaytopic_namespace": "shop", "delaytopic_name": "orders"}
    assert [(s.name, s.labels, s.value) for family in families for s in family.samples] == [
        ("delaytopic_slo_verdict", labels, -1),
        ("delaytopic_slo_generated_timestamp_seconds", labels, NOW_MS / 1000),
    ]


def _own(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name not in ("delaytopic_namespace", "delaytopic_name")}


def test_the_status_carries_the_figures_and_the_place_of_the_report() -> None:
    status = slo_status(sample_report(), "https://reports/shop")

    assert status.to_document() == {
        "attainmentPercent": "99.8226%",
        "latenessP99": "1s33ms",
        "report": "https://reports/shop",
    } | {"latenessP99": status.lateness_p99}
    assert DelayTopicStatus(slo=status).slo == status


def test_the_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    first = slo_condition(sample_report(), 3, None)
    same = slo_condition(sample_report(now_ms=NOW_MS + 60_000), 3, first)
    other = slo_condition(sample_report(faulty=False, now_ms=NOW_MS + 60_000), 4, first)
    unknown = slo_condition(no_verdict("shop/orders", ["The topic is gone."], NOW_MS), None, None)

    assert (first.type, first.status, first.reason) == ("SLOMet", ConditionStatus.FALSE, "Missed")
    assert same.last_transition_time == first.last_transition_time
    assert other.status is ConditionStatus.TRUE
    assert other.last_transition_time > first.last_transition_time
    assert (unknown.status, unknown.reason) == (ConditionStatus.UNKNOWN, "CannotJudge")
    assert unknown.message == "This audit could not judge. The topic is gone."
    assert Condition.model_validate(first.to_document()) == first


def test_the_outputs_are_three_files(tmp_path: Path) -> None:
    files = write_outputs(sample_report(), tmp_path / "new" / "folder")

    assert [file.name for file in files] == ["report.json", "report.html", "metrics.prom"]
    assert json.loads(files[0].read_text(encoding="utf-8"))["verdict"] == "Missed"
    assert sorted(path.name for path in files[0].parent.iterdir()) == ["metrics.prom", "report.html", "report.json"]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    with pytest.raises(SettingsError, match=r"--output: .*file/folder cannot be written to"):
        write_outputs(sample_report(), tmp_path / "file" / "folder")


def test_metrics_are_put_to_the_push_gateway_in_the_place_of_the_delay_topic() -> None:
    taken: list[tuple[str, bytes]] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        Thread(target=server.handle_request).start()
        push_metrics(sample_report(), f"http://127.0.0.1:{server.server_port}")

    [(path, body)] = taken
    assert path == "/metrics/job/delaytopic-slo/delay_topic@base64/c2hvcC9vcmRlci1yZW1pbmRlcnM="
    assert body == prometheus_text(sample_report()).encode()


def test_a_push_gateway_that_does_not_answer_or_is_no_url_is_an_error() -> None:
    with pytest.raises(SloError, match="did not take the metrics"):
        push_metrics(sample_report(), "http://127.0.0.1:1")
    with pytest.raises(SettingsError, match="takes the URL of a push gateway"):
        push_metrics(sample_report(), "file:///etc")


def test_the_reference_names_every_field_of_the_report() -> None:
    assert DOCS.read_text(encoding="utf-8").endswith(tables()), "make it anew: python -m tests.slo.reference"
