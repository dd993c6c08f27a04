"""kubectl asks an API server for the pages of relays, and gets what they answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from tests.cluster.binaries import Programs

from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.pending import PodAnswer, ask_pods

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]


class _Proxy(BaseHTTPRequestHandler):
    """Says which page it was asked for; one pod has gone."""

    def do_GET(self) -> None:
        there = "/pods/gone:" not in self.path
        body = self.path.encode()
        self.send_response(200 if there else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def kubectl(kubernetes_programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubectl]:
    monkeypatch.setenv("PATH", str(kubernetes_programs.directory), prepend=os.pathsep)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": ""}}],
        }
        file = tmp_path / "config"
        file.write_text(yaml.safe_dump(config))
        yield Kubectl.of(kubeconfig=str(file))
        server.shutdown()


def test_each_pod_is_asked_for_the_page(kubectl: Kubectl) -> None:
    answers = ask_pods(kubectl, [("relays", "one"), ("relays", "gone")], "pending", {"limit": 20, "dueBefore": 5})

    path = "/api/v1/namespaces/relays/pods/one:8080/proxy/pending?dueBefore=5&limit=20"
    assert answers[0] == PodAnswer("relays/one", path)
    assert answers[1].text is None
    assert (answers[1].problem or "").startswith("the cluster says: ")
