"""The page of the tour is its own script: what is run and what is shown can't differ, and the rest of it is true."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from playground.platform.installation import OPERATOR_NAMESPACE, chart_values, delay_class
from playground.platform.installed_platform import RELEASE
from playground.tour.page import PageNotUnderstood, Step, joined, parts, recorded, steps
from playground.tour.stage import PAGE, TEAM
from playground.tour.volatile import settled

IMAGES = {"operator": "operator:1", "relay": "relay:1", "audit": "audit:1"}
PLAIN = """\
# A page

```console
$ kubectl get pods
NAME
$ cat <<END
$ is a dollar
END
$ echo one \\
    two
one two
```

The end.
"""


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """Return what is in fences of a kind."""
    return [each.partition("\n```")[0] for each in page().split(f"```{kind}\n")[1:]]


def documents() -> list[dict[str, Any]]:
    return [yaml.safe_load(block) for block in blocks("yaml")]


def test_commands_are_told_from_what_they_print() -> None:
    assert steps(PLAIN) == [
        Step("kubectl get pods", "NAME\n"),
        Step("cat <<END\n$ is a dollar\nEND", ""),
        Step("echo one \\\n    two", "one two\n"),
    ]


def test_only_what_commands_print_is_written_anew() -> None:
    ran: list[str] = []

    def run(command: str) -> str:
        ran.append(command)
        return f"{len(ran)}\n"

    assert recorded(PLAIN, run).splitlines()[3:12] == [
        *("$ kubectl get pods", "1", "$ cat <<END", "$ is a dollar", "END", "2"),
        *("$ echo one \\", "    two", "3"),
    ]
    known = {each.command: each.printed for each in steps(PLAIN)}
    assert recorded(recorded(PLAIN, lambda _: "x\n"), known.__getitem__) == PLAIN


@given(st.lists(st.sampled_from(["```console", "```", "$ ls", "$ cat <<END", "END", "$ a \\", "text", ""])))
def test_a_page_that_is_understood_comes_out_as_it_went_in(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    try:
        pieces = parts(text)
    except PageNotUnderstood:
        return

    assert joined(pieces) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```console\nNAME\n```\n", "begins with 'NAME'"),
        ("```console\n$ ls\n", "the last block of commands has no end"),
        ("```console\n$ cat <<END\nx\n```\n", "the command 'cat <<END' has no end"),
    ],
)
def test_a_block_that_is_no_recording_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PageNotUnderstood, match=problem):
        parts(text)


def test_the_tour_has_every_command_recorded_and_nothing_volatile_in_it() -> None:
    outputs = {each.command: each.printed for each in steps(page())}

    assert joined(parts(page())) == page()
    assert len(outputs) > 10
    assert outputs == {command: settled(printed) for command, printed in outputs.items()}
    assert all(outputs.values())
    assert {block for block in blocks("sh") if "kubectl" in block} == set()


def test_the_tour_stays_in_the_namespace_that_is_cleared_for_it() -> None:
    namespaces = {"bakery": TEAM, "delaytopic-system": OPERATOR_NAMESPACE, "infrastructure": "infrastructure"}
    named = {words[words.index("-n") + 1] for each in steps(page()) if "-n" in (words := each.command.split())}

    assert named == set(namespaces.values())
    assert {each.command.split()[0] for each in steps(page())} == {"kubectl"}


def test_the_class_of_the_tour_is_the_one_that_is_installed() -> None:
    assert [document for document in documents() if document.get("kind") == "DelayClass"] == [delay_class()]


def test_the_values_and_the_command_of_the_tour_install_what_is_installed() -> None:
    values = next(document for document in documents() if "kind" not in document)
    installed = chart_values(IMAGES)
    [installing] = [block for block in blocks("sh") if block.startswith("helm")]

    operator = {**installed["operator"], **values["operator"]}
    assert {**installed, **values, "operator": operator} == installed
    assert installing.split() == [
        *("helm", "install", RELEASE, "charts/delaytopic", "--namespace", OPERATOR_NAMESPACE, "--create-namespace"),
        *("--values", "values.yaml"),
    ]
