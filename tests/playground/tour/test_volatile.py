"""Tests that what differs from run to run is replaced, in tables too, and nothing else is."""

from __future__ import annotations

import pytest
from playground.tour.volatile import settled


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("sent 1 record to a.b, due at 05:19:39.727", "sent 1 record to a.b, due at hh:mm:ss.mmm"),
        ("looks again at 05:20:21 UTC", "looks again at hh:mm:ss UTC"),
        (
            "reminders   True    Ready    0    1/1            9s",
            "reminders   True    Ready    0    1/1            <age>",
        ),
        ("delaytopic   2/2     2            2           8m24s", "delaytopic   2/2     2            2           <age>"),
        ("standard   True       12      true      Redis   8m", "standard   True       <n>     true      Redis   <age>"),
        ("  9s   Normal   Ready   records", "  <age>   Normal   Ready   records"),
        ("  2m15s   Warning   TopicMissing   gone", "  <age>   Warning   TopicMissing   gone"),
        ("backlog     0 pending (counted 12s ago)", "backlog     0 pending (counted <age> ago)"),
        ("05:20:15.374       19s             1:1  a.b", "hh:mm:ss.mmm     <age>             1:1  a.b"),
        ("05:20:15.374        9s             1:1  a.b", "hh:mm:ss.mmm     <age>             1:1  a.b"),
        ("05:20:15.374      +4 ms    +168 ms  order-17", "hh:mm:ss.mmm     <n> ms     <n> ms  order-17"),
        ("05:20:15.374    +104 ms     +1.2 s  order-17", "hh:mm:ss.mmm     <n> ms     <n> ms  order-17"),
        ("nothing is overdue by more than 1000 ms (precision 1s)", None),
        ("due within 50s: 1", None),
        ("a line with an end of spaces   ", "a line with an end of spaces"),
    ],
)
def test_moments_and_ages_are_named_rather_than_told(printed: str, expected: str | None) -> None:
    assert settled(printed) == f"{printed if expected is None else expected}\n"


def test_what_is_settled_stays_as_it_is() -> None:
    once = settled("  9s   Normal   Ready\n05:20:15.374       19s             1:1  a.b   3 ms\n\nx 4s\n")

    assert settled(once) == once


def test_what_prints_nothing_has_no_line() -> None:
    assert settled("") == ""
