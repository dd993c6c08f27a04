"""One run, from its plan to its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from delaytopic_api.relay import Ending
from delaytopic_audit.ledger.buckets import all_folders
from delaytopic_audit.ledger.compaction import last_to_compact, put_together
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.retention import forgotten_asks, remembered
from delaytopic_audit.model.manifest import Asked, Commit, Plan, Refused, Run, RunPlan, State
from delaytopic_audit.model.words import MINUTE_MS, minute_of
from delaytopic_audit.pipeline.grading import Before, Grading, counted_from, grade, graded_formerly
from delaytopic_audit.pipeline.intake import Intake, ingest
from delaytopic_audit.pipeline.members import Judged, Members, telling_of
from delaytopic_audit.pipeline.ports import Progress, Read
from delaytopic_audit.tables.schemas import COMMANDS, RUNS

STAGING = ("extract", "extract-of-named", "graded", "withdrawn", "linked")
EARLIER: Final = "earlier"
"""The part of a run's folder where it puts the tables of runs before it together."""


class NobodyJudged(Exception):
    """The end of a run that found no DelayTopic that can be judged: nothing was committed."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        self.refused = list(refused)
        super().__init__(f"{len(self.refused)} DelayTopics cannot be judged")


def execute_plan(plan: RunPlan, ledger: Ledger, last: Commit | None, read: Read, progress: Progress) -> Commit:
    """Read, judge, and commit; raises NobodyJudged, and ReadingError.

    Killed anywhere before the commit, it has done nothing; carried out again, it does the same.
    """
    folder = ledger.begin(plan)
    runs = list(last.runs) if last is not None else []
    known = {state.plan.number: state for state in last.states} if last is not None else {}
    asked_for = [Judged(each, known.get(each.number)) for each in plan.plans]
    intake = ingest(asked_for, runs, ledger, folder, read, progress)
    refused = [*plan.refused, *intake.refused]
    if not intake.judged:
        raise NobodyJudged(refused)
    telling = {each.number: telling_of(each, intake.read[each.number].first_told_ms) for each in intake.judged}
    members = Members(intake.judged, _others(plan, last, intake.judged, refused), telling)
    whole = _run(plan, folder, intake)
    before = Before(last.folder if last is not None else None, last.parts if last is not None else [])
    grading = grade(members, ledger, folder, intake.records, [*runs, _anywhere(whole)], before, progress)
    done = whole.model_copy(update={"first_minute": grading.first_minute, "last_minute": grading.last_minute})
    floor = members.floor
    states = [_state(each, intake, grading, telling[each.number]) for each in intake.judged]
    commit = Commit(
        sequence=plan.sequence,
        folder=folder,
        states=[_forgetting(state, runs, floor) for state in (*states, *members.others)],
        refused=refused,
        numbers=max((last.numbers if last is not None else 0), *(each.number for each in plan.plans)),
        runs=[*_compacted(ledger, folder, remembered(runs, floor), progress), done],
        parts=grading.parts,
    )
    for table in STAGING:
        ledger.drop(folder, table)
    ledger.commit(commit)
    ledger.sweep(commit)
    return commit


def _others(plan: RunPlan, last: Commit | None, judged: Sequence[Judged], refused: Sequence[Refused]) -> list[State]:
    """Return the DelayTopics that the run does not judge, as they were, but for what is older than their retention.

    Those of which nothing is left are forgotten, unless the run was asked for them.
    """
    if last is None:
        return []
    begun = {each.plan.delay_topic for each in judged}
    wanted = {each.delay_topic for each in refused}
    now_ms = max(each.plan.planned_at_ms for each in judged)
    found = []
    for state in last.states:
        if state.plan.delay_topic in begun:
            continue
        rules = state.plan.rules
        floor = max(state.floor_minute, minute_of(now_ms - rules.grace_ms) - rules.retention_ms // MINUTE_MS)
        if floor < state.closed_minute or state.plan.delay_topic in wanted:
            found.append(state.model_copy(update={"floor_minute": floor}))
    return found


def _state(judged: Judged, intake: Intake, grading: Grading, telling: Mapping[Ending, int]) -> State:
    """Return a DelayTopic as this run leaves it."""
    number, bounds = judged.number, judged.bounds
    return State(
        plan=judged.plan,
        closed_minute=bounds.closed,
        floor_minute=bounds.floor,
        forgotten=judged.last.forgotten if judged.last is not None else [],
        read=intake.read[number].topics,
        clocks=intake.read[number].clocks,
        named=intake.read[number].named,
        out_of_scope=intake.read[number].out_of_scope,
        ancient=intake.read[number].ancient,
        beyond_retention=grading.beyond_retention.get(number, 0),
        restated_minutes=grading.restated_minutes.get(number, 0),
        counted=counted_from(judged),
        formerly=graded_formerly(judged),
        telling=dict(telling),
        awaited_minutes=grading.awaited_minutes.get(number, []),
    )


def _forgetting(state: State, runs: Sequence[Run], floor: int) -> State:
    """Return it with the source records that these runs lose, as all of their minutes are forgotten."""
    return state.model_copy(update={"forgotten": forgotten_asks(runs, floor, state.plan.number, state.forgotten)})


def _run(plan: RunPlan, folder: str, intake: Intake) -> Run:
    asks = {each.number: _asks_of(each.plan) for each in intake.judged}
    return Run(
        sequence=plan.sequence,
        folder=folder,
        first_minute=None,
        last_minute=None,
        commands=intake.commands,
        buckets=intake.buckets,
        overdue=intake.overdue,
        asks={number: pieces for number, pieces in asks.items() if pieces},
        rows=intake.rows,
    )


def _asks_of(plan: Plan) -> list[Asked]:
    of_source = (piece for piece in plan.ranges if piece.topic == plan.source)
    return [Asked(piece.partition, piece.start, piece.end) for piece in of_source if piece.end > piece.start]


def _compacted(ledger: Ledger, folder: str, runs: list[Run], progress: Progress) -> list[Run]:
    """Return the runs before this one, the last of them put together where they have become many."""
    count = last_to_compact(runs)
    if not count:
        return runs
    progress(f"putting the records of {count} runs together")
    several = runs[-count:]
    one = put_together(several, f"{folder}/{EARLIER}")
    for table in one.tables:
        if table == "commands":
            rows = ledger.read_folders(all_folders(several), COMMANDS)
            one = one.model_copy(update={"buckets": ledger.write_commands(one.folder, rows, one.commands)})
            continue
        rows = ledger.read([run.folder for run in several if table in run.tables], table, RUNS[table])
        if table == "records":
            ledger.write_sorted(one.folder, table, rows, one.rows or 0)
        else:
            ledger.write(one.folder, table, rows)
    return [*runs[:-count], one]


def _anywhere(run: Run) -> Run:
    """Return the run before its minutes are known: it may have records of any."""
    return run.model_copy(update={"first_minute": 0, "last_minute": 1 << 40})
