from __future__ import annotations

import json

from bench.figures.goals import GOALS, Verdict
from bench.figures.names import (
    DESIGN,
    INTO,
    NULL,
    OF_DESIGN,
    OF_NATIVE,
    OF_NULL,
    OF_PLAIN,
    OF_SMALLER,
    OUT,
    P99,
    P99_OF_DESIGN,
    RATE,
    TRANSACTIONAL_NULL,
    TWO_RELAYS,
    WRITTEN_OF_NATIVE,
    Table,
    at_rate,
    with_pending,
)
from bench.figures.report import goals_table, tables
from bench.figures.results import Figure, Results, Unit, complete, document, figures_of
from bench.selection import GROWING, Case

from delaytopic_api.values import Dialect, Guarantee

PLAIN, EXACT = Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE
FIXED, FIXED_EXACT = f"{Case.FIXED}, {PLAIN}", f"{Case.FIXED}, {EXACT}"


def measured(*noted: tuple[Table, str, str, Unit, list[float]]) -> Results:
    results = Results()
    for table, case, name, unit, runs in noted:
        for value in runs:
            results.add(table, case, name, unit, value)
    complete(results)
    return results


def rates(table: Table, case: str, *runs: float, name: str = RATE) -> tuple[Table, str, str, Unit, list[float]]:
    return table, case, name, Unit.PER_SECOND, [*runs]


THREE_ROUNDS = (
    rates(Table.THROUGHPUT, NULL, 100, 200, 300),
    rates(Table.THROUGHPUT, TRANSACTIONAL_NULL, 80, 160, 240),
    rates(Table.THROUGHPUT, FIXED, 80, 150, 120),
    rates(Table.THROUGHPUT, FIXED_EXACT, 40, 75, 60),
)


def found(results: Results, case: str, name: str, table: Table = Table.THROUGHPUT) -> Figure:
    return next(each for each in results.figures() if (each.table, each.case, each.name) == (table, case, name))


def test_a_dialect_is_judged_by_the_records_that_it_writes_with_its_deliveries_beside_them() -> None:
    results = measured(
        rates(Table.DIALECTS, Dialect.NATIVE, 100),
        rates(Table.DIALECTS, Dialect.CESIUM, 90),
        rates(Table.DIALECTS, Dialect.SCHEDULER, 30),
    )

    shares = {
        dialect: [
            (share.text(), share.verdict)
            for share in (found(results, dialect, name, Table.DIALECTS) for name in (OF_NATIVE, WRITTEN_OF_NATIVE))
        ]
        for dialect in (Dialect.CESIUM, Dialect.SCHEDULER)
    }

    assert shares == {
        Dialect.CESIUM: [("0.90", Verdict.MET), ("0.90", None)],
        Dialect.SCHEDULER: [("0.30", None), ("0.90", Verdict.MET)],
    }


def test_a_case_is_judged_by_the_median_of_the_ratios_of_each_round() -> None:
    results = measured(*THREE_ROUNDS)

    assert found(results, FIXED, OF_NULL) == Figure(Table.THROUGHPUT, FIXED, OF_NULL, Unit.RATIO, [0.8, 0.75, 0.4])
    assert found(results, FIXED, OF_NULL).verdict is Verdict.MET
    assert found(results, FIXED_EXACT, OF_NULL).verdict is Verdict.MISSED
    assert found(results, FIXED_EXACT, OF_PLAIN).runs == [0.5, 0.5, 0.5]
    assert found(results, TRANSACTIONAL_NULL, OF_NULL).median == 0.8


def test_the_rate_of_a_backlog_is_that_of_a_record_that_goes_in_and_out() -> None:
    case = f"{Case.REDIS}, {PLAIN}"
    results = measured(
        *THREE_ROUNDS,
        rates(Table.BACKLOG, case, 60, 120, 180, name=INTO),
        rates(Table.BACKLOG, case, 60, 120, 180, name=OUT),
    )

    assert found(results, case, RATE).runs == [30, 60, 90]
    assert found(results, case, OF_NULL).runs == [0.3, 0.3, 0.3]


def test_without_the_null_relay_there_are_no_ratios() -> None:
    results = measured(rates(Table.THROUGHPUT, FIXED, 1))

    assert [figure.name for figure in results.figures()] == [RATE]


def test_what_is_past_due_is_compared_with_the_well_known_design_of_the_same_round() -> None:
    results = measured(
        rates(Table.PAST_DUE, PLAIN, 60, 40),
        rates(Table.PAST_DUE, f"{PLAIN}{TWO_RELAYS}", 80, 60),
        rates(Table.PAST_DUE, DESIGN, 10, 10),
    )

    assert found(results, PLAIN, OF_DESIGN, Table.PAST_DUE).verdict is Verdict.MET
    assert found(results, f"{PLAIN}{TWO_RELAYS}", OF_DESIGN, Table.PAST_DUE).runs == [8, 6]


def test_lateness_is_compared_with_the_well_known_design_at_one_load() -> None:
    results = measured(
        *(
            (Table.LATENESS, at_rate(who, load), P99, Unit.MS, [float(late_ms)])
            for who, load, late_ms in ((PLAIN, 1_000, 9), (PLAIN, 10_000, 30), (DESIGN, 10_000, 15))
        )
    )

    ratios = [figure for figure in results.figures() if figure.name == P99_OF_DESIGN]

    assert [(figure.case, figure.runs, figure.verdict) for figure in ratios] == [
        (at_rate(PLAIN, 10_000), [2], Verdict.MISSED)
    ]


def test_rates_with_millions_pending_are_compared_with_those_of_a_hundred_thousand() -> None:
    kind = GROWING[0]
    results = measured(
        *(
            rates(Table.PENDING, with_pending(*kind, pending), rate, name=name)
            for pending, rate in ((10_000, 9), (100_000, 10), (4_000_000, 8))
            for name in (INTO, OUT)
        )
    )

    ratios = {figure.case: figure.runs for figure in results.figures() if figure.name == OF_SMALLER}

    assert ratios == {with_pending(*kind, 4_000_000): [0.8]}


def test_a_document_is_json_with_every_figure_and_can_be_read_again() -> None:
    results = measured(*THREE_ROUNDS)

    text = json.dumps(document({"processors": 2}, {"copied": 10}, results.figures()))
    again = figures_of(json.loads(text))

    assert again == results.figures()
    assert json.loads(text)["figures"][4] == {
        "table": "throughput",
        "case": FIXED,
        "figure": OF_NULL,
        "unit": "ratio",
        "median": 0.75,
        "runs": [0.8, 0.75, 0.4],
        "goal": ">= 0.75",
        "verdict": "met",
    }


def test_a_table_has_a_row_for_each_case_with_medians_and_ranges() -> None:
    (table,) = tables(measured(*THREE_ROUNDS).figures())

    assert table.headings == ("throughput", RATE, OF_NULL, OF_PLAIN)
    assert table.rows[0] == (NULL, "200 (100 to 300)", "", "")
    assert table.rows[3] == (FIXED_EXACT, "60 (40 to 75)", "0.38 (0.20 to 0.40)", "0.50")


def test_the_table_of_goals_has_those_that_something_was_measured_for() -> None:
    table = goals_table(
        measured(*THREE_ROUNDS, (Table.RESTART, PLAIN, "until caught up", Unit.SECONDS, [2.0])).figures()
    )

    assert [row[:4] for row in table.rows] == [
        (f"killed and started again in place: {PLAIN}: until caught up", "2.00 s", "<= 2.5 s", "met"),
        (f"throughput: {FIXED}: of null", "0.75 (0.40 to 0.80)", ">= 0.75", "met"),
        (f"throughput: {FIXED_EXACT}: of null", "0.38 (0.20 to 0.40)", ">= 0.62", "not met"),
    ]


def test_every_goal_says_what_bounds_it() -> None:
    assert all(goal.bound for goal in GOALS.values())
