"""`kubectl delaytopic get`, `reschedule` and `cancel`: a scripted kubectl, and a gateway at the port it forwards."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.gateway.dead_letters import stored
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over
from tests.support.gateway.rights import Table
from tests.support.relay.backlog.listings import pending_list
from tests.unit.cli.kubectl.scripted_kubectl import NAME, SYSTEM, ScriptedKubectl, failing, forwarding

from delaytopic_api.records import Headers
from delaytopic_api.relay import PendingList, PendingRecord, PendingShard
from delaytopic_cli.kubectl.__main__ import run
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.telemetry.server import Health, PageServer

HOUR_MS = 3_600_000
HEADERS: Headers = [("own", b"1"), ("deliver-id", b"order/17")]
TEA = Schedule(NOW_MS + HOUR_MS, 7, b"customer-4", b"tea", HEADERS, id=b"order/17")
NO_GATEWAY = (
    "no gateway is installed in the namespace delaytopic-system (the chart's value gateway.enabled; elsewhere: "
    "--gateway-namespace)"
)
MISSING = "this needs update on delaytopics/records of delaytopic.dev in namespace shop"


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene(), Table()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({REMINDERS: [(2, TEA)]})


@pytest.fixture
def scripted(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedKubectl:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kubectl = ScriptedKubectl(tmp_path)
    kubectl.write()
    kubectl.write_services(gateway=forwarding(urlsplit(scene.url).port or 0))
    return kubectl


def called(directory: Path, command: str, *arguments: str, caller: str | None = "editor") -> int:
    """Return the exit code of a command, called with somebody's token; None: with a kubeconfig's."""
    words = [*command.split(), NAME, *arguments]
    if caller is None:
        return run(words)
    token = directory / "token"
    token.write_text(caller)
    return run([*words, "--token-file", str(token)])


def test_the_gateway_is_found_by_its_labels_and_its_port_is_forwarded_no_longer_than_needed(
    scripted: ScriptedKubectl, tmp_path: Path
) -> None:
    assert called(tmp_path, "get", "order/17") == 0

    assert [line.split("get ")[-1] for line in scripted.asked()[1:]] == [
        "services --selector=app.kubernetes.io/part-of=delaytopic,app.kubernetes.io/component=gateway --output=json",
        f"--namespace={SYSTEM} port-forward service/gateway :80 --address=127.0.0.1",
    ]
    assert not Path("/proc", (tmp_path / "gateway.pid").read_text().strip()).exists()


def test_who_may_only_read_gets_the_record_without_what_it_holds_and_is_told(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "get", "order/17", caller="viewer") == 0

    said = capsys.readouterr()
    record = json.loads(said.out)
    assert (record["id"], record["key"], record["content"]) == ("order/17", None, None)
    assert said.err == f"keys, values and headers are left out: {MISSING}\n"


def test_a_record_is_cancelled_where_it_waits(
    scene: Scene, scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "cancel", "order/17", "gone", "--no-wait", "-o", "text") == 8

    assert capsys.readouterr().out.splitlines() == [
        "order/17: the cancel was written to partition 2; relays have not read it yet, as far as is known",
        "gone: not pending so far; relays have records still to read, so try again in a moment",
        "2 ids: 1 written, not read yet, 1 not known",
    ]
    assert [(dict(record.headers)["deliver-id"], partition) for _, record, partition in scene.written] == [
        (b"order/17", 2)
    ]


@pytest.mark.parametrize(
    ("command", "caller", "exit_code", "message"),
    [
        (["get", "order/17"], "stranger", 1, "who is it?"),
        (["get", "order/17"], "other", 5, "the gateway does not serve shop/reminders: your token's owner may not "),
        (["reschedule", "order/17", "--now"], "viewer", 1, MISSING),
        (["cancel", "order/17"], "viewer", 1, MISSING),
        (["reschedule", "order/17", "--after", "25h"], "editor", 5, "the time asked for"),
        (["dead-letters resend", "0:1"], "viewer", 1, MISSING),
    ],
)
def test_what_the_gateway_refuses_is_one_line_with_the_code_of_its_reason(
    scene: Scene,
    scripted: ScriptedKubectl,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    caller: str,
    exit_code: int,
    message: str,
) -> None:
    assert called(tmp_path, *command, caller=caller) == exit_code

    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert (error.count("\n"), scene.written) == (1, [])


def test_a_gateway_that_cannot_be_answered_for_now_has_a_code_of_its_own(
    scene: Scene, scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.silent = True

    assert called(tmp_path, "cancel", "order/17") == 5

    assert capsys.readouterr().err == "error: no relay of shop/reminders runs; ask again\n"


def test_without_a_gateway_nothing_is_written_and_the_value_of_the_chart_is_named(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write_services()

    codes = [called(tmp_path, *command) for command in (["cancel", "a"], ["reschedule", "a", "--now"])]

    assert (codes, capsys.readouterr().err) == ([1, 1], f"error: {NO_GATEWAY}\n" * 2)


def test_without_a_gateway_relays_show_a_record(scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    record = PendingRecord(due_ms=NOW_MS, partition=1, offset=7, target="shop.reminders", id="a", key="k")
    shards = [PendingShard(partition=each, listed=True) for each in range(2)]
    asked: list[str] = []

    def answer(query: str) -> PendingList:
        asked.append(query)
        return pending_list(source_partitions=2, pending=1, shards=shards).model_copy(update={"records": [record]})

    with relay(answer) as port:
        scripted.write(one=forwarding(port))
        scripted.write_services()
        code = run(["get", NAME, "a", "--partition", "1"])

    said = capsys.readouterr()
    assert (code, asked) == (0, ["id=a&contents=true&partition=1&limit=100&maxBytes=1048576"])
    assert json.loads(said.out) == record.model_dump(by_alias=True)
    assert said.err == ""


@contextmanager
def relay(answer: Callable[[str], PendingList]) -> Iterator[int]:
    """Serve the pages of a relay; the port."""
    healthy = Health(True, "running")
    server = PageServer(
        "127.0.0.1",
        0,
        health=lambda: healthy,
        readiness=lambda: healthy,
        metrics=bytes,
        status=lambda: pytest.fail("nobody asks for it"),
        pending=answer,
    )
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def test_who_may_only_read_sees_where_and_why_dead_letters_are(
    scene: Scene, scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.letters.records = {REMINDERS.dead_letter: [stored("0:1", REMINDERS.source, key=b"secret")]}

    assert called(tmp_path, "dead-letters list", "-o", "text", caller="viewer") == 0

    _, line, total, note = capsys.readouterr().out.splitlines()
    assert line.split()[-6:] == ["expired", "-", "-", "0:1", "no", "-"]
    assert (total, note) == ("1 dead letter: 1 expired", f"keys, values and headers are left out: {MISSING}")


@pytest.mark.parametrize("lacks", ["a token", "rights"])
def test_who_may_not_ask_the_gateway_is_shown_what_relays_list(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str], lacks: str
) -> None:
    has = {"username": "ann", "password": "secret"} if lacks == "a token" else {"token": "editor"}
    if lacks == "rights":
        scripted.write_services(gateway=failing('Error from server (Forbidden): services "gateway" is forbidden'))

    with relay(lambda _: pending_list(shards=[PendingShard(partition=0, listed=True)], pending=3)) as port:
        scripted.write(one=forwarding(port))
        code = run(["pending", NAME, "--kubeconfig", str(user(tmp_path, **has))])

    said = capsys.readouterr()
    assert (code, json.loads(said.out)["pending"], said.err) == (0, 3, "")


def test_one_of_several_gateways_has_to_be_chosen(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write_services(one=failing("no"), two=failing("no"))

    assert called(tmp_path, "get", "order/17") == 1

    assert capsys.readouterr().err == (
        "error: there are several gateways in delaytopic-system: one, two; choose by --gateway-service\n"
    )


def test_who_may_not_forward_the_port_is_told_the_rights_that_it_takes(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write_services(gateway=failing('Error from server (Forbidden): services "gateway" is forbidden'))

    assert called(tmp_path, "cancel", "order/17") == 1

    assert capsys.readouterr().err == (
        'error: the cluster says: services "gateway" is forbidden; to reach the gateway takes get and list on services '
        "and pods, and create on pods/portforward there\n"
    )


def user(tmp_path: Path, **user: object) -> Path:
    """Write the kubeconfig of a user."""
    entry = {"name": "ann", "user": user}
    cluster = {"name": "east", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "east", "context": {"cluster": "east", "user": "ann"}}
    document = {"clusters": [cluster], "users": [entry], "contexts": [context], "current-context": "east"}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **document}))
    return file


def plugin(tmp_path: Path) -> dict[str, object]:
    """Return how a kubeconfig names a plugin that prints a token."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    answer = json.dumps({**credential, "status": {"token": "editor"}})
    program = tmp_path / "plugin"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o700)
    return {"apiVersion": credential["apiVersion"], "command": str(program), "interactiveMode": "Never"}


@pytest.mark.parametrize("way", ["token", "tokenFile", "exec"])
def test_the_token_is_that_of_the_kubeconfigs_user(
    scripted: ScriptedKubectl,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    (tmp_path / "of-a-file").write_text("editor\n")
    ways = {"token": "editor", "tokenFile": str(tmp_path / "of-a-file"), "exec": plugin(tmp_path)}
    monkeypatch.setenv("KUBECONFIG", str(user(tmp_path, **{way: ways[way]})))

    assert called(tmp_path, "get", "order/17", caller=None) == 0

    assert json.loads(capsys.readouterr().out)["content"]["key"] == "customer-4"


def test_who_has_a_certificate_is_told_how_to_come_by_a_token(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = user(tmp_path, username="ann", password="secret")

    assert called(tmp_path, "cancel", "order/17", "--kubeconfig", str(file), caller=None) == 1

    assert capsys.readouterr().err == (
        "error: your kubeconfig's user has no token, which is what the gateway knows people by; give one of a "
        "ServiceAccount: --token-file <(kubectl create token NAME -n shop)\n"
    )


def test_a_kubeconfig_that_cannot_be_read_is_one_line(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(tmp_path, "get", "order/17", "--kubeconfig", str(tmp_path / "none"), caller=None) == 1

    error = capsys.readouterr().err
    assert error.startswith("error: no token can be had from your kubeconfig: ")
    assert error.count("\n") == 1


def test_without_the_package_that_reads_kubeconfigs_it_is_said_how_to_do(
    scripted: ScriptedKubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)

    codes = [called(tmp_path, "get", "order/17", caller=caller) for caller in (None, "editor")]

    assert codes == [1, 0]
    assert capsys.readouterr().err == (
        "error: to take the token from your kubeconfig needs the Python package kubernetes: pip install "
        "'delaytopic[gateway]'; or give --token-file\n"
    )
