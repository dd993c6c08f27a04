"""The command: what it tells about itself, and how it ends when it cannot run."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.support.operator.recording import recording
from tests.support.paths import ROOT

from delaytopic_operator.command_line import FILES, open_many_files, operator_command
from delaytopic_operator.config import read_operator_config
from delaytopic_operator.errors import ConfigurationError

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


def run(*arguments: str) -> tuple[int, dict[str, str]]:
    """Exit code and the last line of the log."""
    command = [sys.executable, "-m", "tests.support.operator.recording", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=ROOT)
    return done.returncode, json.loads(done.stderr.splitlines()[-1])


def written(directory: Path, document: object) -> Path:
    path = directory / "operator.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_help_says_what_it_does_and_how_it_ends() -> None:
    text = CliRunner().invoke(operator_command(recording), ["--help"]).output

    assert all(word in text for word in ("--config", "--kubeconfig", "--log-level", "Exit codes", "SIGTERM", "/readyz"))


def test_outside_of_a_cluster_it_says_what_to_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    code, line = run()

    assert (code, line["event"]) == (2, "misconfigured")
    assert line["reason"].endswith("outside of a cluster, give --kubeconfig")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"kind": "OperatorConfig", "workers": 0}, "workers"),
        ({"kind": "OperatorConfig", "resnyc": "5m"}, "resnyc"),
        ({"kind": "OperatorConfig", "gateway": {}}, "gateway: set exactly one of tokenSha256 and tokenSecret"),
        ({"kind": "DelayTopic"}, "kind: must be OperatorConfig"),
        (None, "must hold one OperatorConfig, not 0 documents"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, document: object, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        read_operator_config(written(tmp_path, document))


def test_a_wrong_configuration_ends_the_command_with_its_own_code(tmp_path: Path) -> None:
    code, line = run("--config", str(written(tmp_path, {"kind": "OperatorConfig", "workers": "many"})))

    assert (code, line["event"], "workers" in line["reason"]) == (2, "misconfigured", True)


def test_a_kubeconfig_that_is_none_is_a_wrong_configuration(tmp_path: Path) -> None:
    code, line = run("--kubeconfig", str(written(tmp_path, {"kind": "Config"})))

    assert (code, line["event"]) == (2, "misconfigured")
    assert line["reason"].startswith("cannot log in to Kubernetes with")


def test_a_port_that_is_taken_is_a_wrong_configuration(tmp_path: Path, taken_port: int) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
    config = written(tmp_path, {"kind": "OperatorConfig", "httpPort": taken_port})

    code, line = run("--config", str(config), "--kubeconfig", str(kubeconfig))

    assert (code, line["event"]) == (2, "misconfigured")
    assert line["reason"].startswith(f"httpPort: cannot listen on port {taken_port}")


def test_it_allows_itself_the_files_that_it_may() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if before[1] == resource.RLIM_INFINITY else min(FILES, before[1])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))

        open_many_files()

        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
