"""`kubectl delaytopic get`, `cancel` and others with a gateway, relays and users of a real API server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from images.tools.binaries import Programs
from playground.kube.awaiting import await_condition
from playground.kube.kube_client import Object
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import await_pending
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for
from tests.support.relay.records import at, now_ms

from delaytopic_cli.kubectl.__main__ import run
from delaytopic_cli.plan.command import plan
from delaytopic_local.verifier.verdict import DeliveredRecord

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.usefixtures("users_kubectl")]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HOUR_MS = 3_600_000
NAME = "reminders"
REPORT = "report"
CLOCK = r"\d\d:\d\d:\d\d\.\d{3}"
IDS = ("shown", "moved", "cancelled", "cancelled too", "kept", "of a job", "of a job too")
READ = ("delaytopic.dev", ["delaytopics", "recurringrecords"], ["get"])
WRITE = ("delaytopic.dev", ["delaytopics/records"], ["update"])
REACH = (
    ("", ["services", "pods"], ["get", "list"]),
    ("", ["pods/portforward"], ["create"]),
)
# The nodes of these tests forward no ports: all else is asked of the API server.
KUBECTL = """\
#!/bin/sh
case "$*" in
*port-forward*)
  echo 'Forwarding from 127.0.0.1:{port} -> 8080'
  exec sleep 600 ;;
esac
exec {kubectl} "$@"
"""
Rule = tuple[str, list[str], list[str]]


@pytest.fixture(scope="module")
def gateway(running: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a gateway process; its Service is in the API server."""
    directory = tmp_path_factory.mktemp("gateway")
    config = directory / "kafka.yaml"
    config.write_text(f"bootstrapServers: {running.kafka.bootstrap_servers}\n", encoding="utf-8")
    command = [sys.executable, "-m", "delaytopic_gateway", "--listen=127.0.0.1:0", "--kafka-config", str(config)]
    options = ["--kubeconfig", str(running.plane.kubeconfig), "--operator-namespace", running.namespace]
    labels = {"app.kubernetes.io/part-of": "delaytopic", "app.kubernetes.io/component": "gateway"}
    service = {
        "metadata": {"name": "delaytopic-gateway", "labels": labels},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}], "selector": labels},
    }
    running.client.create(f"/api/v1/namespaces/{running.namespace}/services", service)
    log = directory / "gateway.log"
    with (
        log.open("wb") as output,
        subprocess.Popen([*command, *options], stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            listening = wait_for(lambda: re.search(r"listening at http://\S+:(\d+)\n", log.read_text()), log.read_text)
            yield int(listening[1])
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def waiting(running: Platform, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Records that relays have taken in; when they are due."""
    running.apply_topic(NAME, precision="200ms", outcomes={"topic": f"{running.team}.{NAME}.outcomes"})
    running.await_condition(NAME, "Ready", seconds=60)
    team, due_ms = AppTeam.of(running, NAME, tmp_path_factory.mktemp("team")), now_ms() + HOUR_MS
    team.send([(name.encode(), b"tea", [("deliver-id", name.encode()), at(due_ms)]) for name in IDS])
    await_pending(running, NAME, len(IDS))
    return due_ms


@pytest.fixture(scope="module")
def kubectl(gateway: int, users_kubectl: None, kubernetes_programs: Programs, tmp_path_factory: Any) -> Iterator[None]:
    """The kubectl of the PATH, which forwards the port of every Service to the gateway."""
    directory: Path = tmp_path_factory.mktemp("kubectl")
    program = directory / "kubectl"
    program.write_text(KUBECTL.format(port=gateway, kubectl=kubernetes_programs.path("kubectl")))
    program.chmod(0o700)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", str(directory), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def users(running: Platform) -> dict[str, Path]:
    """Kubeconfigs of ServiceAccounts of the team."""
    return {
        "editor": account(running, "editor", [READ, WRITE], REACH),
        "viewer": account(running, "viewer", [READ], REACH),
        "outsider": account(running, "outsider", [READ, WRITE], ()),
    }


def account(running: Platform, name: str, rules: Sequence[Rule], there: Sequence[Rule]) -> Path:
    """Make a ServiceAccount of the team with rights in its namespace, and `there`, where the gateway is."""
    running.client.create(f"/api/v1/namespaces/{running.team}/serviceaccounts", {"metadata": {"name": name}})
    for namespace, given in ((running.team, rules), (running.namespace, there)):
        listed = [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in given]
        running.client.create(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": name}, "rules": listed})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": running.team}],
        }
        running.client.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)
    return running.plane.kubeconfig_for_service_account(running.team, name)


class User:
    """Somebody who calls the command with his own kubeconfig."""

    def __init__(self, running: Platform, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._options = ["-n", running.team, "--kubeconfig", str(kubeconfig), "--gateway-namespace", running.namespace]
        self._capsys = capsys

    def __call__(self, command: str, *arguments: str, name: str = NAME) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors."""
        code = run([*command.split(), name, *arguments, *self._options])
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def editor(running: Platform, users: dict[str, Path], kubectl: None, capsys: pytest.CaptureFixture[str]) -> User:
    return User(running, users["editor"], capsys)


@pytest.fixture
def viewer(running: Platform, users: dict[str, Path], kubectl: None, capsys: pytest.CaptureFixture[str]) -> User:
    return User(running, users["viewer"], capsys)


def test_who_may_write_sees_a_record_whole(editor: User, waiting: int) -> None:
    code, output, errors = editor("get", "shown")

    record = json.loads(output)
    assert (code, errors) == (0, "")
    assert (record["id"], record["dueMs"], record["content"]["value"]) == ("shown", waiting, "tea")


def test_who_may_read_sees_when_and_where_and_may_write_nothing(running: Platform, viewer: User, waiting: int) -> None:
    missing = f"this needs update on delaytopics/records of delaytopic.dev in namespace {running.team}"

    code, output, errors = viewer("get", "shown")
    refused = [viewer("cancel", "kept"), viewer("reschedule", "kept", "--now")]

    record = json.loads(output)
    assert (code, record["dueMs"], record["content"], record["key"]) == (0, waiting, None, None)
    assert errors == f"keys, values and headers are left out: {missing}\n"
    assert refused == [(1, "", f"error: {missing}\n")] * 2


def test_a_record_is_moved(editor: User, waiting: int) -> None:
    code, output, errors = editor("reschedule", "moved", "--at", str(waiting + HOUR_MS))

    assert (code, json.loads(output)["dueMs"], errors) == (0, waiting + HOUR_MS, "")
    wait_for(lambda: json.loads(editor("get", "moved")[1])["dueMs"] == waiting + HOUR_MS)


def test_records_are_cancelled_and_who_did_so_is_told(running: Platform, editor: User, waiting: int) -> None:
    by = f"by system:serviceaccount:{running.team}:editor"

    code, output, errors = editor("cancel", "cancelled", "nowhere", "cancelled too", "--wait", "30s", "-o", "text")

    assert (code, errors) == (7, "")
    assert re.sub(CLOCK, "HH:MM:SS", output).splitlines() == [
        f"cancelled: cancelled at HH:MM:SS, {by}",
        "nowhere: nothing with this id was pending",
        f"cancelled too: cancelled at HH:MM:SS, {by}",
        "3 ids: 2 cancelled, 1 not pending",
    ]
    ended = editor("get", "cancelled", "-o", "text")
    assert (ended[0], re.sub(CLOCK, "HH:MM:SS", ended[1]).splitlines()[0]) == (
        0,
        f"ended    cancelled at HH:MM:SS, {by}",
    )
    assert editor("get", "nowhere")[0] == 5
    assert editor("get", "kept")[0] == 0


def test_all_that_match_are_moved_by_a_job(editor: User, viewer: User, waiting: int) -> None:
    asked = ["move", "--by", "1h", "--id-prefix", "of a job"]

    counted = editor("jobs start", *asked, "--dry-run", "-o", "text")
    refused = viewer("jobs start", *asked, "--yes")
    code, output, _ = editor("jobs start", *asked, "--yes", "--follow")

    job = json.loads(output)
    assert (counted[:2], refused[:2]) == ((0, "2 records match now\n"), (1, ""))
    assert (code, job["state"], job["written"], job["skipped"]) == (0, "Done", 2, {})
    assert json.loads(viewer("jobs list")[1]) == [job]
    wait_for(lambda: json.loads(editor("get", "of a job too")[1])["dueMs"] == waiting + HOUR_MS)


def test_dead_letters_are_listed_and_sent_again(
    running: Platform, editor: User, viewer: User, waiting: int, tmp_path: Path
) -> None:
    AppTeam.of(running, NAME, tmp_path).send([(b"late", b"tea", [("deliver-at", b"soon"), ("deliver-id", b"late")])])
    wait_for(lambda: json.loads(editor("dead-letters list")[1])["deadLetters"])

    (letter,) = json.loads(editor("dead-letters list", "--reason", "malformed-header")[1])["deadLetters"]
    refused = viewer("dead-letters resend", letter["place"], "--after", "1h")
    sent = editor("dead-letters resend", letter["place"], "--after", "1h", "-o", "text")
    again = editor("dead-letters resend", letter["place"], "--after", "1h", "-o", "text")

    source = f"{running.team}.{NAME}.delayed"
    assert (letter["key"], letter["valueBytes"], letter["sentAgain"]) == ("late", 3, False)
    assert (refused[0], refused[1]) == (1, "")
    assert sent == (0, f"sent 1 dead letter to {source} again\n", "")
    assert again[1].splitlines()[-1] == f"not sent: {letter['place']}: it was sent again before"
    wait_for(lambda: editor("get", "late")[0] == 0)


@pytest.fixture(scope="module")
def recurring(running: Platform, waiting: int) -> Object:
    """A RecurringRecord whose first delivery waits, for some hours."""
    far = (now_ms() // HOUR_MS + 12) % 24
    spec = {"delayTopic": NAME, "cron": f"0 {far} * * *", "key": REPORT, "headers": {"kind": "daily"}, "value": "tea"}
    running.apply("RecurringRecord", REPORT, spec, namespace=running.team)
    path = f"{API}/namespaces/{running.team}/recurringrecords/{REPORT}"
    return await_condition(running.client, path, "Ready", "True", reason="Written", seconds=40)


def test_a_plan_against_the_cluster_knows_what_was_written_for_a_recurring_record(
    running: Platform, recurring: Object, tmp_path: Path
) -> None:
    config, file = tmp_path / "operator.yaml", tmp_path / "report.yaml"
    seen = {"namespace": running.namespace, "watchNamespaces": [running.team], "relayNamespaces": []}
    config.write_text(yaml.safe_dump({"apiVersion": recurring["apiVersion"], "kind": "OperatorConfig", **seen}))

    def planned(**edit: str) -> tuple[int, str, list[str]]:
        metadata = {"name": REPORT, "namespace": running.team}
        file.write_text(yaml.safe_dump({**recurring, "metadata": metadata, "spec": {**recurring["spec"], **edit}}))
        with redirect_stdout(StringIO()) as printed:
            arguments = ["-f", str(file), "--against", "cluster", "--operator-config", str(config), "-o", "json"]
            code = plan.main(arguments, standalone_mode=False)
        (found,) = json.loads(printed.getvalue())["recurringRecords"]
        return code, found["judgement"], [step["action"] for step in found["steps"]]

    assert [planned(), planned(value="coffee")] == [
        (0, "NothingToDo", []),
        (2, "Changes", ["Update", "ReplaceRecord"]),
    ]


def test_a_recurring_record_is_delivered_by_hand_and_its_chain_is_not_touched(
    running: Platform, editor: User, viewer: User, recurring: Object, tmp_path: Path
) -> None:
    team, name = AppTeam.of(running, NAME, tmp_path), recurring["metadata"]["uid"]
    before = wait_for(lambda: (found := editor("get", name))[0] == 0 and found)
    span = ["--from", "2024-03-01T00:00:00Z", "--to", "2024-03-03T23:59:59Z"]

    refused = viewer("trigger", name=REPORT)
    triggered = editor("trigger", name=REPORT)
    filled = editor("backfill", *span, "--yes", name=REPORT)

    def arrived() -> list[DeliveredRecord]:
        return [each for each in team.delivered() if each.key == REPORT.encode()]

    wait_for(lambda: len(arrived()) == 4)
    assert (refused[:2], triggered[0], filled[0]) == ((1, ""), 0, 0)
    of_trigger, *of_backfill = arrived()
    whose = f":{running.team}/{REPORT}".encode()
    days_ms = [round(datetime.fromisoformat(each).timestamp() * 1_000) for each in json.loads(filled[1])["times"]]
    assert [name for name, _ in of_trigger.headers] == ["kind", "delay-triggered"]
    assert [(each.value, list(each.headers)) for each in of_backfill] == [
        (b"tea", [("kind", b"daily"), ("delay-backfilled", b"%d%b" % (day_ms, whose))]) for day_ms in days_ms
    ]
    assert (len(days_ms), editor("get", name)) == (3, before)


def test_who_has_a_certificate_gives_a_token_in_a_file(
    running: Platform, waiting: int, kubectl: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    admin = User(running, running.plane.kubeconfig, capsys)
    token = tmp_path / "token"
    token.write_text(running.plane.kubectl("create", "token", "default", "-n", running.team))

    without = admin("reschedule", "shown", "--now")
    stranger = admin("get", "shown", "--token-file", str(token))

    assert (without[0], stranger[0]) == (1, 5)
    assert f"--token-file <(kubectl create token NAME -n {running.team})" in without[2]
    assert stranger[2].startswith(f"error: the gateway does not serve {running.team}/{NAME}: your token's owner may")


def test_who_may_not_see_the_gateways_namespace_is_told_the_rights(
    running: Platform, users: dict[str, Path], kubectl: None, waiting: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = User(running, users["outsider"], capsys)("get", "shown")

    assert code == 1
    assert "cannot list resource" in errors
    assert errors.endswith("takes get and list on services and pods, and create on pods/portforward there\n")


def test_where_no_gateway_is_installed_that_is_told(
    running: Platform, kubectl: None, waiting: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["cancel", NAME, "kept", "-n", running.team, "--gateway-namespace", running.team])

    error = f"error: no gateway is installed in the namespace {running.team} (the chart's value gateway.enabled; "
    assert (code, capsys.readouterr().err) == (1, f"{error}elsewhere: --gateway-namespace)\n")
