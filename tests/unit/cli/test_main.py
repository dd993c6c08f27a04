"""The command line up to the point where a broker would be asked."""

from __future__ import annotations

import io
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from delaytopic_cli.__main__ import cli, run
from delaytopic_cli.commands.send import summary, timing_of
from delaytopic_gateway.client.new_records import Timing
from delaytopic_gateway.client.sending import Sent
from delaytopic_process.errors import InputError

IN_SECONDS = (
    "1795269686 as epoch milliseconds is a time in 1973 or before; if it is in seconds, write 1795269686000 for it"
)
COMMANDS = [
    *(
        "init",
        "validate",
        "local",
        "clock",
        "status",
        "send",
        "explain",
        "cancel",
        "get",
        "reschedule",
        "jobs",
        "watch",
        "trial",
    ),
    *("pending", "dead-letters", "plan"),
]


@pytest.fixture(autouse=True)
def nothing_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DELAYTOPIC_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))


def test_help_lists_the_commands_in_the_order_of_use() -> None:
    text = CliRunner().invoke(cli, ["--help"], prog_name="delaytopic").output

    commands = [line.split()[0] for line in text.split("Commands:\n")[1].splitlines() if line[2] != " "]
    assert commands == [*COMMANDS, "audit"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_examples(command: str) -> None:
    text = CliRunner().invoke(cli, [command, "--help"]).output

    assert "  Examples:\n    " in text
    assert f"delaytopic {command} " in text.split("Examples:")[1]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (
            ["watch", "b"],
            2,
            "error: no Kafka: name one with --bootstrap-servers, or start one with: delaytopic local -f FILE",
        ),
        (
            ["send", "a", "-b", "h:1", "--cron", "0 9 * * *"],
            2,
            "error: what recurs, or is due by the clocks of a zone, needs a name to end it by: add --id",
        ),
        (
            ["send", "a", "-b", "h:1", "--cron", "0 9 * * *", "--id", "x", "--every", "1h"],
            2,
            "error: header deliver-every is a rule beside that of header deliver-cron: leave one of them out",
        ),
        (
            ["send", "a", "-b", "h:1", "--every", "1h", "--id", "x", "--after", "1h"],
            2,
            "error: --after and --spread do not go with a rule or a zone: leave them out",
        ),
        (
            ["send", "a", "-b", "h:1", "--after", "5x"],
            2,
            'error: "5x" is not a duration; write it like 500ms, 90s or 1h30m',
        ),
        (["send", "a", "-b", "h:1", "--after", "5s", "--at", "1"], 2, "error: set --after or --at, not both"),
        (["send", "a", "-b", "h:1", "--at", "1795269686"], 2, f"error: {IN_SECONDS}"),
        (
            ["send", "a", "-b", "h:1", "--header", "deliver-at=1795269686"],
            2,
            f"error: --header: deliver-at: {IN_SECONDS}",
        ),
        (
            ["send", "a", "-b", "h:1", "--header", "deliver-expires-at=1795269686"],
            2,
            f"error: --header: deliver-expires-at: {IN_SECONDS}",
        ),
        (["send", "a", "-b", "h:1", "--header", "x"], 2, 'error: --header takes KEY=VALUE, not "x"'),
        (["send", "a", "-b", "h:1", "-X", "=x"], 2, 'error: -X takes KEY=VALUE, not "=x"'),
    ],
)
def test_wrong_input_is_one_clear_line(
    arguments: list[str], exit_code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (run(arguments), capsys.readouterr().err) == (exit_code, f"{line}\n")


def test_every_problem_of_a_document_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(
        "apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {name: x}\n"
        "spec: {source: {topic: a}, target: {topic: a}, precision: soon}\n",
        encoding="utf-8",
    )

    code = run(["local", "-f", str(file)])

    lines = capsys.readouterr().err.splitlines()
    assert code == 2
    assert lines
    assert all(line.startswith(f"error: {file}: DelayTopic default/x: spec.") for line in lines)


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sned"]) == 2
    assert "No such command 'sned'. Did you mean send?" in capsys.readouterr().err


def test_a_choice_that_is_none_is_answered_with_the_one_that_it_resembles(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dead-letters", "list", "x.dlq", "--reason", "malformed-headers"]) == 2
    assert "Did you mean malformed-header" in capsys.readouterr().err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert (run(["--version"]), capsys.readouterr().out) == (0, f"delaytopic {version('delaytopic')}\n")


def test_a_refused_client_setting_is_a_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["watch", "b", "-b", "127.0.0.1:1", "-X", "no.such.setting=1"])

    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("error: ")
    assert "no.such.setting" in error


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"after": None, "at": None, "spread": None}, Timing()),
        ({"after": None, "at": "1795269686270", "spread": None}, Timing(at_ms=1_795_269_686_270)),
        ({"after": "1s", "at": None, "spread": "2s"}, Timing(at_ms=101_000, spread_ms=2_000)),
        ({"after": None, "at": None, "spread": "2s"}, Timing(at_ms=100_000, spread_ms=2_000)),
    ],
)
def test_options_become_a_timing(options: dict[str, str | None], expected: Timing) -> None:
    assert timing_of(**options, now_ms=100_000) == expected


def test_both_times_are_refused() -> None:
    with pytest.raises(InputError):
        timing_of(after="1s", at="1", spread=None, now_ms=0)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (Sent(1), "sent 1 record to a"),
        (Sent(2_000, 0, 0), "sent 2,000 records to a, due at "),
        (Sent(2, 0, 1_000), "sent 2 records to a, due from "),
    ],
)
def test_the_summary_of_a_send(sent: Sent, text: str) -> None:
    assert summary("a", sent, now_ms=0).startswith(text)
