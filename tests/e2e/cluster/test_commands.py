"""A program that fails says how it ended and what it printed last."""

from __future__ import annotations

import pytest
from tests.e2e.cluster.commands import run, succeeds
from tests.e2e.cluster.errors import CommandFailed, MachineLacks


def test_the_output_is_what_was_printed_on_standard_output() -> None:
    assert run("sh", "-c", "echo $WORD; echo noise >&2", environment={"WORD": "tea"}) == "tea\n"


def test_what_is_given_is_read() -> None:
    assert run("cat", given="tea") == "tea"


def test_an_error_carries_the_end_of_the_output() -> None:
    with pytest.raises(CommandFailed) as failed:
        run("sh", "-c", "seq 100 >&2; exit 3")

    lines = str(failed.value).splitlines()
    assert lines[0] == "sh -c seq 100 >&2; exit 3: exit code 3:"
    assert lines[1:] == [f"  {number}" for number in range(86, 101)]


def test_a_program_that_does_not_end_is_given_up() -> None:
    with pytest.raises(CommandFailed, match=r"^sleep 60: not done after 0\.01 s$"):
        run("sleep", "60", seconds=0.01)


def test_a_program_that_is_not_there_is_lacking() -> None:
    with pytest.raises(MachineLacks, match="there is no program no-such-program on the PATH"):
        run("no-such-program")


def test_success_is_an_exit_code_of_zero() -> None:
    assert [succeeds("true"), succeeds("false"), succeeds("no-such-program")] == [True, False, False]
