from __future__ import annotations

import pytest
from bench.figures.goals import AtLeast, AtMost, Verdict
from bench.figures.names import (
    INTO,
    NULL,
    OF_NATIVE,
    OF_NULL,
    OF_PLAIN,
    OUT,
    RATE,
    TRANSACTIONAL_NULL,
    WRITTEN_OF_NATIVE,
    Table,
)
from bench.figures.results import Figure, Results, Unit, complete
from bench.selection import Case

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


@pytest.mark.parametrize(
    ("goal", "value", "expected"),
    [
        (AtLeast(0.6), 0.6, Verdict.MET),
        (AtLeast(0.6), 0.59, Verdict.MISSED),
        (AtMost(20), 20, Verdict.MET),
        (AtMost(20), 21, Verdict.MISSED),
    ],
)
def test_a_goal_includes_its_limit(goal: AtLeast | AtMost, value: float, expected: Verdict) -> None:
    found = goal.judge(value)

    assert found is expected
