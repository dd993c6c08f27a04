"""`kubectl delaytopic pending` without a gateway: relays are asked at the ports that a scripted kubectl forwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from socket import SHUT_RDWR, create_server
from threading import Thread

import pytest
from tests.support.child_process import hearing_ctrl_c
from tests.support.relay.backlog.listings import pending_list
from tests.unit.cli.kubectl.scripted_kubectl import FOREVER, NAME, NAMESPACE, ScriptedKubectl, failing, forwarding
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_api.relay import PendingList, PendingRecord, PendingShard
from delaytopic_cli.kubectl.__main__ import run
from delaytopic_relay.telemetry.server import Health, PageServer

WHY = (
    "relays were asked because no gateway is installed in the namespace delaytopic-system (the chart's value "
    "gateway.enabled; elsewhere: --gateway-namespace)"
)
PORT_FORWARD = "port-forward pod/{} :8080 --address=127.0.0.1"


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedKubectl:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kubectl = ScriptedKubectl(tmp_path)
    kubectl.write_services()
    return kubectl


def list_of(number: int, partitions: int = 2) -> PendingList:
    """Return the list of the relay of one partition, with one record."""
    shards = [PendingShard(partition=each, listed=each == number) for each in range(partitions)]
    record = PendingRecord(due_ms=1_000 + number, partition=number, offset=7, target="shop.reminders", key=f"k{number}")
    listed = pending_list(relay=f"relay-{number}", source_partitions=partitions, pending=1, shards=shards)
    return listed.model_copy(update={"records": [record]})


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


@contextmanager
def hanging_up() -> Iterator[int]:
    """Take connections and end each as soon as something was asked; the port."""
    with create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    client.recv(4096)

        Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(SHUT_RDWR)


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    code = run(["pending", NAME, "-n", NAMESPACE, *options])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_lists_of_all_pods_are_put_together(scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def answer(number: int, parameters: str) -> PendingList:
        asked.append(parameters)
        return list_of(number)

    with ExitStack() as relays:
        ports = [relays.enter_context(relay(partial(answer, number))) for number in range(2)]
        scripted.write(**{f"pod-{number}": forwarding(port) for number, port in enumerate(ports)})
        code, out, _ = printed(capsys, "--limit", "5", "--due-before", "1795269686270")

    found = json.loads(out)
    assert (code, found["complete"], [each["key"] for each in found["records"]]) == (0, True, ["k0", "k1"])
    assert asked == ["dueBefore=1795269686270&limit=5&maxBytes=524288"] * 2
    forwarded = sorted(line for line in scripted.asked() if "port-forward" in line)
    assert forwarded == [f"--namespace=relays {PORT_FORWARD.format(pod)}" for pod in ("pod-0", "pod-1")]


def test_more_pods_than_are_asked_at_a_time_are_asked_one_after_the_other(
    scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(number: int, _: str) -> PendingList:
        return list_of(number, partitions=20)

    with ExitStack() as relays:
        ports = [relays.enter_context(relay(partial(answer, number))) for number in range(20)]
        scripted.write(**{f"pod-{number:02}": forwarding(port) for number, port in enumerate(ports)})
        code, out, _ = printed(capsys)

    assert (code, json.loads(out)["complete"], json.loads(out)["pending"]) == (0, True, 20)


def test_a_proxy_of_the_environment_is_not_asked(
    scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with relay(lambda _: list_of(0)) as port:
        scripted.write(one=forwarding(port))

        assert printed(capsys)[0] == 0


def test_pods_that_do_not_answer_are_named_with_the_reason(
    scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a pod that answers, and others of which each fails in its own way
    lost = "echo 'error: lost connection to pod' >&2\n"
    with relay(lambda _: list_of(0)) as good, hanging_up() as dying:
        scripted.write(
            a_good=forwarding(good),
            b_dying=f"{lost}{forwarding(dying)}",
            c_refused=failing('Error from server (Forbidden): User "ann" may not'),
        )

        # When they are asked
        code, out, _ = printed(capsys)

    # Then the list is there, and called incomplete
    found = json.loads(out)
    assert (code, found["complete"], len(found["records"])) == (0, False, 1)
    assert [note for note in found["notes"] if note.startswith("relays/")] == [
        "relays/b_dying does not answer: Remote end closed connection without response; "
        "kubectl says: lost connection to pod",
        'relays/c_refused the cluster says: User "ann" may not',
    ]


def test_a_pod_that_nobody_may_forward_to_is_one_line_without_commands_for_the_terminal(
    scripted: ScriptedKubectl, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.write(one=failing(f"Error from server (Forbidden): {HOSTILE}"))

    said = f"no relay told what is pending: relays/one the cluster says: {HARMLESS}"
    assert printed(capsys) == (5, "", f"error: {said}; ask again when they answer; {WHY}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_command_that_is_ended_leaves_no_port_open(scripted: ScriptedKubectl, number: signal.Signals) -> None:
    scripted.write(one=FOREVER, two=FOREVER)
    command = [sys.executable, "-m", "delaytopic_cli.kubectl", "pending", NAME, "-n", NAMESPACE]
    with hearing_ctrl_c():
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with started as running:
        processes = [scripted.process(pod) for pod in ("one", "two")]

        running.send_signal(number)

        assert [each.ends() for each in processes] == [True, True]
        out, err = running.communicate(timeout=20)

    code = 130 if number is signal.SIGINT else -number
    assert (running.returncode, out, err.decode().strip()) == (code, b"", "")
