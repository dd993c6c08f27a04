"""The files of a report, and the push gateway."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.unit.audit.sample_report import sample_report

from delaytopic_audit.errors import AuditError, SettingsError
from delaytopic_audit.outputs import push_metrics, write_outputs
from delaytopic_audit.report.prometheus import prometheus_text


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
    assert path == "/metrics/job/delaytopic-audit/delay_topic@base64/c2hvcC9vcmRlci1yZW1pbmRlcnM="
    assert body == prometheus_text(sample_report()).encode()


def test_a_push_gateway_that_does_not_answer_or_is_no_url_is_an_error() -> None:
    with pytest.raises(AuditError, match="did not take the metrics"):
        push_metrics(sample_report(), "http://127.0.0.1:1")
    with pytest.raises(SettingsError, match="takes the URL of a push gateway"):
        push_metrics(sample_report(), "file:///etc")
