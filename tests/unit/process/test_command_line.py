"""Text that others wrote, on somebody's terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_process.command_line import echo_json, echo_lines, fail, printable

TITLE = "\x1b]0;owned\x07"
"""Sets the title of the window."""
CLEAR = "\x1b[2J\x1b[H"
"""Clears the screen."""
C1_CLEAR = "\x9b2J"
"""The same in one character less, which JSON does not escape by itself."""
REVERSED = "\u202egnp.exe"
"""Shows what follows from right to left."""
HOSTILE = f"{TITLE}{CLEAR}{C1_CLEAR}{REVERSED}\x7f"
HARMLESS = r"\u001b]0;owned\u0007\u001b[2J\u001b[H\u009b2J\u202egnp.exe\u007f"


@pytest.mark.parametrize("text", ["späte Erinnerung — 5 € 日本語 🎉", "", "C:\\new"])
def test_text_of_any_language_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_commands_for_a_terminal_are_shown_and_not_obeyed() -> None:
    assert printable(HOSTILE) == HARMLESS


def test_a_line_break_forges_no_line() -> None:
    assert printable("late\nshop/other: Ready\r") == r"late\nshop/other: Ready\r"


@given(st.text())
def test_whatever_the_text_only_printable_characters_remain(text: str) -> None:
    assert printable(text).isprintable()


@given(st.dictionaries(st.text(), st.text()))
def test_json_says_the_same_with_printable_characters_only(value: dict[str, str]) -> None:
    text = printable(json.dumps(value, ensure_ascii=False))

    assert (json.loads(text), text.isprintable()) == (value, True)


def test_lines_stay_lines_and_json_stays_readable(capsys: pytest.CaptureFixture[str]) -> None:
    echo_lines(f"first\n{CLEAR}second")
    echo_json({"message": f"später {C1_CLEAR}"}, indent=1)

    assert capsys.readouterr().out == (
        "first\n" + r"\u001b[2J\u001b[Hsecond" + "\n{\n" + r' "message": "später \u009b2J"' + "\n}\n"
    )


def test_errors_that_quote_others_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    code = fail(f"the cluster says: {HOSTILE}", 1)

    assert (code, capsys.readouterr().err) == (1, f"error: the cluster says: {HARMLESS}\n")
