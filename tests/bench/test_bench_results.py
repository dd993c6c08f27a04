from __future__ import annotations

import json

from bench.cases import Case
from bench.figures.goals import Verdict
from bench.figures.report import tables
from bench.figures.results import Measured, Throughput, Timing, bursts, dialects, document, throughputs, timings
from bench.figures.statistics import Lateness

from delaytopic_api.values import Dialect, Guarantee

PLAIN, EXACT = Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE


def measured() -> Measured:
    found = Measured(null=[100.0, 200.0, 300.0], null_transactional=[80.0, 160.0, 240.0])
    for rate in (70.0, 140.0, 120.0):
        found.add_rate(Case.FIXED, PLAIN, rate)
        found.add_rate(Case.FIXED, EXACT, rate / 2)
    for case, rates in ((Case.REDIS, [60.0, 120.0, 180.0]), (Case.BUCKETS, [120.0, 240.0, 360.0])):
        found.filled[case, PLAIN] = found.drained[case, PLAIN] = rates
        found.peak_memory_bytes[case, PLAIN] = 100 << 20
    found.lateness = {
        (PLAIN, 2_000): Lateness(10, 1, 2, 3),
        (PLAIN, 10_000): Lateness(10, 3, 20, 99),
        (EXACT, 10_000): Lateness(10, 31, 70, 99),
    }
    found.burst_ms = {PLAIN: 1_001}
    found.combine_backlogs()
    return found


def test_a_case_is_judged_by_the_median_of_the_ratios_of_each_round() -> None:
    found = throughputs(measured())

    assert found == [
        Throughput("null relay", [100.0, 200.0, 300.0], 1.0),
        Throughput("null relay, transactional", [80.0, 160.0, 240.0], 0.8),
        Throughput("fixed delay, AtLeastOnce", [70.0, 140.0, 120.0], 0.7, ">= 0.60", Verdict.OK),
        Throughput(
            "fixed delay, ExactlyOnce",
            [35.0, 70.0, 60.0],
            0.35,
            ">= 0.75 of AtLeastOnce",
            Verdict.MISSED,
            of_at_least_once=0.5,
        ),
        Throughput("Redis, 10 minutes, in and out, AtLeastOnce", [30.0, 60.0, 90.0], 0.3, ">= 0.30", Verdict.OK),
        Throughput(
            "Kafka buckets, 10 minutes, in and out, AtLeastOnce", [60.0, 120.0, 180.0], 0.6, ">= 0.30", Verdict.OK
        ),
    ]


def test_without_the_null_relay_there_are_no_ratios() -> None:
    found = throughputs(Measured())

    assert found == []


def test_lateness_is_judged_at_one_load_by_both_percentiles() -> None:
    found = timings(measured())

    assert found == [
        Timing("AtLeastOnce, 2,000/s", Lateness(10, 1, 2, 3)),
        Timing("AtLeastOnce, 10,000/s", Lateness(10, 3, 20, 99), "<= 3 / 20 ms", Verdict.OK),
        Timing("ExactlyOnce, 10,000/s", Lateness(10, 31, 70, 99), "<= 30 / 80 ms", Verdict.MISSED),
    ]


def test_a_burst_has_a_second() -> None:
    (found,) = bursts(measured(), 50_000)

    assert (found.name, found.goal, found.verdict) == ("AtLeastOnce, 50,000", "<= 1.0 s", Verdict.MISSED)


def test_the_document_is_json_with_every_figure() -> None:
    found = json.loads(json.dumps(document({"processors": 2}, {"copied": 10}, measured(), 50_000)))

    assert found["machine"] == {"processors": 2}
    assert found["records"] == {"copied": 10}
    assert found["throughput"][2] == {
        "case": "fixed delay, AtLeastOnce",
        "ratioToNull": 0.7,
        "ratioToAtLeastOnce": None,
        "goal": ">= 0.60",
        "verdict": "ok",
        "perSecond": 120,
        "runsPerSecond": [70, 140, 120],
    }
    assert found["redis"] == {
        "AtLeastOnce": {
            "inPerSecond": [60, 120, 180],
            "outPerSecond": [60, 120, 180],
            "relayPeakMemoryBytes": 100 << 20,
        }
    }
    assert found["buckets"]["AtLeastOnce"]["inPerSecond"] == [120, 240, 360]
    assert found["lateness"][1]["verdict"] == "ok"
    assert found["bursts"] == [{"case": "AtLeastOnce, 50,000", "ms": 1_001, "goal": "<= 1.0 s", "verdict": "missed"}]


def test_ratios_stand_in_front_of_absolute_figures() -> None:
    throughput, backlog, lateness, burst = tables(measured(), 50_000)

    assert throughput.rows[2] == (
        "fixed delay, AtLeastOnce",
        "0.70",
        "",
        ">= 0.60",
        "ok",
        "120",
        "70 140 120",
    )
    assert backlog.rows == [
        ("RedisZset, AtLeastOnce", "120", "120", "100 MiB"),
        ("KafkaBuckets, AtLeastOnce", "240", "240", "100 MiB"),
    ]
    assert lateness.rows[1] == ("AtLeastOnce, 10,000/s", "3 ms", "20 ms", "99 ms", "<= 3 / 20 ms", "ok")
    assert burst.rows == [("AtLeastOnce, 50,000", "1.00 s", "<= 1.0 s", "missed")]


def test_what_was_not_measured_has_no_table() -> None:
    found = list(tables(Measured(null=[1.0]), 50_000))

    assert [table.headings[0] for table in found] == ["throughput"]


def test_a_dialect_is_judged_by_its_deliveries_and_shown_by_what_it_writes_with_them() -> None:
    rates = {Dialect.NATIVE: [100.0], Dialect.SCHEDULER: [40.0], Dialect.REDELIVERY: [50.0], Dialect.BLACK_BOX: [60.0]}

    found = dialects(Measured(dialects=rates))

    assert [(each.name, each.records, each.written_ratio, each.verdict) for each in found] == [
        ("Native", 1, 1.0, None),
        ("Scheduler", 3, 0.4 * 3, Verdict.MISSED),
        ("Redelivery", 2, 1.0, Verdict.MISSED),
        ("BlackBox", 1, 0.6, Verdict.OK),
    ]
