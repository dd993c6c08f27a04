from __future__ import annotations

from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_local.demo.run import summary_lines, undisturbed
from delaytopic_local.demo.scenario import MALFORMED, Scenario
from delaytopic_local.verifier.reading import Rules, read_source
from delaytopic_local.verifier.verdict import DeadLetter, Fate, Lateness, Outage, SourceRecord, Verdict, verify

START_MS = 1_795_262_400_000
RULES = Rules(target="b", max_delay_ms=720 * 3_600_000)
SCENARIO = Scenario(records=2_000)


def as_read(records: list[OutgoingRecord]) -> list[SourceRecord]:
    return [
        read_source(RawRecord(Coordinates("a", 0, n), START_MS + 500, key, value, tuple(headers)), RULES)
        for n, (key, value, headers) in enumerate(records)
    ]


def everything() -> list[SourceRecord]:
    records = [*SCENARIO.schedules(START_MS), *SCENARIO.corrections(START_MS), *SCENARIO.malformed()]
    return as_read(records)


def test_the_records_are_due_evenly_over_the_span() -> None:
    dues = sorted(record.due_ms for record in as_read(list(SCENARIO.schedules(START_MS))))

    assert dues == [START_MS + 5_000 + 10 * number for number in range(2_000)]


def test_the_audit_expects_what_the_scenario_promises() -> None:
    source = everything()

    letters = [DeadLetter(sent.at, "", sent.key, sent.value, sent.sent_headers) for sent in source[-len(MALFORMED) :]]

    verdict = verify(source, [], letters, until_ms=0)

    assert (verdict.schedules, verdict.cancelled, verdict.replaced, verdict.pending, verdict.dead_lettered) == (
        2_100,
        100,
        100,
        1_900,
        5,
    )
    assert verdict.is_clean


def test_corrections_come_long_before_what_they_correct_is_due() -> None:
    source = everything()
    corrected = {
        record.schedule_id for record in source[2_000:] if record.fate is not Fate.DEAD_LETTER and record.schedule_id
    }

    dues = [record.due_ms for record in source[:2_000] if record.schedule_id in corrected]

    assert len(dues) == 200
    assert min(dues) >= START_MS + 8_000


def test_only_what_waited_during_the_outage_is_disturbed_by_it() -> None:
    outage = Outage(1_000, 2_000)
    before, over, into, inside, after = (
        Lateness(900, 50),
        Lateness(900, 200),
        Lateness(1_500, 700),
        Lateness(1_500, 1),
        Lateness(2_001, 3),
    )

    assert undisturbed([before, over, into, inside, after], outage) == [50, 3]


def test_the_summary_of_a_clean_run() -> None:
    verdict = Verdict(3, 2, 1, 0, 0, 0, (Lateness(0, 4), Lateness(5_000, 8)))

    lines = list(summary_lines(verdict, [Lateness(0, 9)], Outage(1_000, 2_500)))

    assert [line.split() for line in lines[:7]] == [
        ["delivered", "2"],
        ["lost", "0"],
        ["twice", "0"],
        ["early", "0"],
        ["cancelled", "1"],
        ["replaced", "0"],
        ["dead-lettered", "0"],
    ]
    assert lines[8].split() == ["lateness", "records", "p50", "p99", "max"]
    assert lines[10].split("  ")[-1].strip() == "8 ms"
    assert lines[-1] == "every record arrived once, and none early"


def test_the_summary_names_what_is_wrong() -> None:
    verdict = Verdict(
        1, 0, 0, 0, 0, 0, (), lost=(Coordinates("a", 0, 7),), dead_letters_missing=(Coordinates("a", 1, 2),)
    )

    lines = list(summary_lines(verdict, [], Outage(0, 0)))

    assert lines[-3:] == [
        "FAULT lost: 1, such as a:0:7",
        "FAULT dead letters missing: 1, such as a:1:2",
        "THE AUDIT FOUND FAULTS",
    ]
