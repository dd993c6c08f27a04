"""Documents and commands on the pages are ones that delaytopic takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.support.pages import PAGES, commands, yaml_texts
from tests.support.paths import ROOT

from delaytopic_api import DelayClass, DelayTopic, load_document
from delaytopic_api.policy import refusals
from delaytopic_cli.__main__ import cli
from delaytopic_cli.kubectl.__main__ import cli as kubectl_delaytopic

GROUP = "delaytopic.dev/"


def documents(page: Path) -> list[dict[str, Any]]:
    """Return the DelayTopics, DelayClasses and RecurringRecords of a page."""
    parsed = [document for text in yaml_texts(page) for document in yaml.safe_load_all(text)]
    return [each for each in parsed if isinstance(each, dict) and str(each.get("apiVersion", "")).startswith(GROUP)]


def command_lines(page: Path) -> Iterator[tuple[click.Command, list[str]]]:
    """Return the command lines of a page that are delaytopic's: the group, and what follows its name."""
    for typed in commands(page):
        words = typed[typed.index("--") + 1 :] if typed[:2] == ["kubectl", "exec"] else typed
        if words[0].rpartition("/")[2] == "delaytopic":
            yield cli, words[1:]
        elif words[:2] == ["kubectl", "delaytopic"]:
            yield kubectl_delaytopic, words[2:]


def parse(command: click.Command, arguments: list[str], context: click.Context | None = None) -> None:
    """Read a command line down to the last subcommand's options. Raises `click.UsageError`; runs nothing."""
    context = click.Context(command, parent=context, info_name=command.name)
    _, rest, _ = command.make_parser(context).parse_args(list(arguments))
    if isinstance(command, click.Group) and rest:
        _, chosen, rest = command.resolve_command(context, rest)
        assert chosen is not None
        parse(chosen, rest, context)


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_documents_are_ones_that_delaytopic_takes(page: Path) -> None:
    for document in documents(page):
        load_document(document)


@each_page
def test_commands_and_their_options_exist(page: Path) -> None:
    for group, arguments in command_lines(page):
        try:
            parse(group, arguments)
        except click.UsageError as error:
            pytest.fail(f"delaytopic {' '.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("arguments", [["sent", "topic"], ["send", "--afer", "1s", "topic"], ["dead-letters", "sow"]])
def test_a_command_or_option_that_does_not_exist_is_found(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(cli, arguments)


def test_a_class_for_those_who_move_allows_each_of_the_services() -> None:
    loaded = [load_document(document) for document in documents(ROOT / "docs" / "how-to" / "move.md")]
    topics = [each for each in loaded if isinstance(each, DelayTopic)]
    [of_class] = [each for each in loaded if isinstance(each, DelayClass)]

    refused = [problem for topic in topics for problem in refusals(topic, of_class, None)]

    assert (len(topics), refused) == (8, [])
