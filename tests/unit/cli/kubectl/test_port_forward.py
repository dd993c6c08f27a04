"""Ports that a scripted kubectl forwards: each is open for as long as it is used, whatever kubectl does."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.cli.kubectl.scripted_kubectl import FOREVER, Process, ScriptedKubectl, failing, forwarding

from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.kubectl.port_forward import Forward, PortForwards

FORBIDDEN = (
    'Error from server (Forbidden): pods "one" is forbidden: User "ann" cannot create resource "pods/portforward"'
)
LOST = "E1121 21:37:32.1 99 portforward.go:424] an error occurred\nerror: lost connection to pod"


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedKubectl:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return ScriptedKubectl(tmp_path)


def forwards(start_seconds: float = 20.0, end_seconds: float = 20.0) -> PortForwards:
    return PortForwards(Kubectl.of(context="east"), start_seconds=start_seconds, end_seconds=end_seconds)


def problem_of(scripted: ScriptedKubectl, script: str, start_seconds: float = 20.0) -> str:
    """Return why the port is not forwarded; nothing runs afterwards."""
    scripted.write(one=script)
    with pytest.raises(KubectlFailed) as failed, forwards(start_seconds).to("relays", "pod/one", 8080):
        pytest.fail("it is not forwarded")
    began = scripted.directory / "one.pid"
    assert not (began.exists() and Path("/proc", began.read_text().strip()).exists())
    return str(failed.value)


def test_a_port_is_forwarded_while_it_is_used(scripted: ScriptedKubectl) -> None:
    scripted.write(one=forwarding(4711))

    with forwards().to("relays", "pod/one", 8080) as forward:
        process = scripted.process("one")
        assert (forward, process.ends(seconds=0)) == (Forward("http://127.0.0.1:4711"), False)
        process = scripted.process("one")

    assert process.ends()
    assert scripted.asked() == ["--context=east --namespace=relays port-forward pod/one :8080 --address=127.0.0.1"]


def test_what_kubectl_says_beside_the_port_is_passed_over(scripted: ScriptedKubectl) -> None:
    scripted.write(one=f"echo Hello\necho 'Forwarding from [::1]:9 -> 8080'\n{forwarding(4711)}")

    with forwards().to("relays", "pod/one", 8080) as forward:
        assert forward.url == "http://127.0.0.1:4711"


def test_a_forward_that_fails_says_why(scripted: ScriptedKubectl) -> None:
    said = 'the cluster says: pods "one" is forbidden: User "ann" cannot create resource "pods/portforward"'

    assert problem_of(scripted, failing(FORBIDDEN)) == said


def test_a_forward_that_ends_without_a_word_says_so(scripted: ScriptedKubectl) -> None:
    assert problem_of(scripted, "exit 0") == "kubectl says: nothing, and failed"


def test_a_forward_that_says_nothing_is_given_up(scripted: ScriptedKubectl) -> None:
    said = problem_of(scripted, FOREVER, start_seconds=0.3)

    assert said == "kubectl port-forward named no port within 0.3 s"


def test_a_forward_that_never_comes_to_the_point_is_given_up_with_what_it_said(scripted: ScriptedKubectl) -> None:
    said = problem_of(scripted, "while :; do echo Wait; done")

    assert said.startswith("kubectl port-forward named no port: kubectl says: Wait Wait ")
    assert len(said) < 6_000


def test_a_forward_that_dies_midway_tells_what_it_died_of(scripted: ScriptedKubectl) -> None:
    scripted.write(one=forwarding(4711, then=failing(LOST)))

    with forwards().to("relays", "pod/one", 8080) as forward:
        assert scripted.process("one").ends()

    assert forward == Forward("http://127.0.0.1:4711", "kubectl says: lost connection to pod")


def test_an_error_of_the_user_ends_the_forward(scripted: ScriptedKubectl) -> None:
    scripted.write(one=forwarding(4711))

    processes: list[Process] = []

    def use() -> None:
        with forwards().to("relays", "pod/one", 8080):
            processes.append(scripted.process("one"))
            raise LookupError

    with pytest.raises(LookupError):
        use()

    assert [each.ends() for each in processes] == [True]


def test_a_forward_that_does_not_listen_is_killed(scripted: ScriptedKubectl) -> None:
    scripted.write(one=f"trap '' TERM\n{forwarding(4711)}")

    with forwards(end_seconds=0.1).to("relays", "pod/one", 8080):
        process = scripted.process("one")

    assert process.ends()


def test_what_a_wrapper_around_kubectl_started_ends_with_it(scripted: ScriptedKubectl) -> None:
    scripted.write(one=f"sleep 600 & echo $! > child.new && mv child.new child.pid\n{forwarding(4711, then='wait')}")

    with forwards().to("relays", "pod/one", 8080):
        child = Process.of(scripted.directory / "child.pid")

    assert child.ends()


def test_the_end_of_all_ends_what_a_thread_waits_for_and_lets_none_begin(scripted: ScriptedKubectl) -> None:
    scripted.write(one=FOREVER)

    def open_port() -> None:
        with every.to("relays", "pod/one", 8080):
            pytest.fail("it is not forwarded")

    with ThreadPoolExecutor(1) as threads:
        with forwards(start_seconds=600) as every:
            waiting = threads.submit(open_port)
            process = scripted.process("one")
        late = threads.submit(open_port)

        said = [str(each.exception(timeout=20)) for each in (waiting, late)]

    assert process.ends()
    assert said == ["kubectl says: nothing, and failed", "kubectl port-forward was not started: the command ends"]


def test_without_kubectl_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with (
        pytest.raises(KubectlFailed, match="there is no kubectl on the PATH; install it first"),
        forwards().to("relays", "pod/one", 8080),
    ):
        pytest.fail("it is not forwarded")
