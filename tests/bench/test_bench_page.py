from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from bench.command import KEPT, PAGE
from bench.errors import BenchError
from bench.figures.names import INTO, OF_NULL, OUT, P99, RATE, Table, at_rate, with_pending
from bench.figures.page import BEGIN, END, page_with, plots_of
from bench.figures.plot import Bar, bars, lines
from bench.figures.results import Figure, Unit, document
from bench.machine import describe_machine
from bench.selection import GROWING, Case

from delaytopic_api.values import Guarantee

FIXED = f"{Case.FIXED}, {Guarantee.AT_LEAST_ONCE}"


def results() -> dict[str, Any]:
    machine = {**describe_machine(), "redis": "Valkey 9", "data": "in memory"}
    figures = [
        Figure(Table.THROUGHPUT, FIXED, OF_NULL, Unit.RATIO, [0.8, 0.7]),
        Figure(Table.PAST_DUE, Guarantee.EXACTLY_ONCE, RATE, Unit.PER_SECOND, [27_000.0]),
        *(
            Figure(Table.LATENESS, at_rate(Guarantee.EXACTLY_ONCE, load), P99, Unit.MS, [30.0])
            for load in (1_000, 40_000)
        ),
        *(
            Figure(Table.PENDING, with_pending(*GROWING[0], 4_000_000), name, Unit.PER_SECOND, [1_000.0])
            for name in (INTO, OUT)
        ),
    ]
    return document(machine, {}, figures)


def test_the_page_keeps_its_words_and_shows_the_results_between_its_marks() -> None:
    page = page_with(f"# Words\n\n{BEGIN}\nold\n{END}\n\n## More\n", results())

    assert page.startswith(f"# Words\n\n{BEGIN}\n\nMeasured on ")
    assert page.endswith(f"{END}\n\n## More\n")
    assert "old" not in page
    assert f"| throughput: {FIXED}: of null | 0.75 (0.70 to 0.80) | >= 0.75 | met | " in page


def test_the_page_shows_every_plot_there_is() -> None:
    page = page_with(f"{BEGIN}{END}", results())

    files = [path.as_posix() for path in plots_of(results())]

    assert files == [f"figures/performance-{name}.svg" for name in ("throughput", "past-due", "lateness", "pending")]
    assert all(f"]({file})" in page for file in files)


def test_a_page_without_a_place_for_results_is_refused() -> None:
    with pytest.raises(BenchError, match="no place for results"):
        page_with("# Words", results())


def test_the_documentation_has_a_place_for_results() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert page_with(text, results()) != text


def test_the_documentation_shows_the_run_that_is_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")

    shown = [page_with(text, json.loads(kept.read_text(encoding="utf-8"))) for kept in [KEPT] if kept.exists()]

    assert shown in ([], [text])


def test_plots_are_well_formed_and_say_what_they_show() -> None:
    for svg in plots_of(results()).values():
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")


def test_bars_are_as_long_as_their_medians() -> None:
    root = ElementTree.fromstring(bars("a < b", [Bar("one", "1 s", 1, 1, 1), Bar("two", "2 s", 2, 1, 3, goal=3)]))

    rectangles = root.findall("{http://www.w3.org/2000/svg}rect")[1:]
    one, two = (float(each.attrib["width"]) for each in rectangles)

    assert two == pytest.approx(2 * one, abs=0.2)


def test_a_line_joins_its_points_in_order() -> None:
    root = ElementTree.fromstring(lines("title", ("x", "y"), {"one": [(100, 10), (1, 1), (10, 0)]}))

    line = root.find("{http://www.w3.org/2000/svg}polyline")

    assert line is not None
    xs = [float(point.partition(",")[0]) for point in line.attrib["points"].split()]
    assert xs == sorted(xs)
    assert len(xs) == 3
