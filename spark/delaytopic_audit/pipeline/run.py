"""One run, from its plan to its commit."""

from __future__ import annotations

from typing import Final

from delaytopic_audit.ledger.compaction import last_to_compact, put_together
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.retention import forgotten_asks, remembered
from delaytopic_audit.model.manifest import Commit, Plan, Run
from delaytopic_audit.pipeline.grading import bounds_of, counted_from, grade, graded_formerly
from delaytopic_audit.pipeline.intake import Intake, ingest
from delaytopic_audit.pipeline.ports import Progress, Read
from delaytopic_audit.tables.schemas import RUNS

STAGING = ("extract", "extract-of-named", "withdrawn")
EARLIER: Final = "earlier"
"""Of a run's folder: where it puts the tables of runs before it together."""


def execute_plan(plan: Plan, ledger: Ledger, last: Commit | None, read: Read, progress: Progress) -> Commit:
    """Read, judge, and commit. `last` is the last commit of any epoch.

    Killed anywhere before the commit, it has done nothing; carried out again, it does the same.
    """
    before = last if last is not None and last.plan.epoch == plan.epoch else None
    folder = ledger.begin(plan)
    intake = ingest(plan, ledger, folder, before, read, progress)
    runs = list(before.runs) if before is not None else []
    floor = bounds_of(plan, before).floor
    whole = _run(plan, folder, intake)
    grading = grade(plan, ledger, folder, intake.records, [*runs, _anywhere(whole)], before, progress)
    done = whole.model_copy(
        update={
            "first_minute": grading.first_minute,
            "last_minute": grading.last_minute,
        }
    )
    commit = Commit(
        plan=plan,
        closed_minute=grading.closed_minute,
        floor_minute=floor,
        runs=[*_compacted(ledger, folder, remembered(runs, floor), progress), done],
        parts=grading.parts,
        forgotten=forgotten_asks(runs, floor, before.forgotten if before is not None else []),
        read=intake.read,
        clocks=intake.clocks,
        named=intake.named,
        out_of_scope=intake.out_of_scope,
        ancient=intake.ancient,
        beyond_retention=grading.beyond_retention,
        restated_minutes=grading.restated_minutes,
        counted=counted_from(plan, before),
        formerly=graded_formerly(plan, before),
    )
    for table in STAGING:
        ledger.drop(folder, table)
    ledger.commit(commit)
    ledger.sweep(commit)
    return commit


def _run(plan: Plan, folder: str, intake: Intake) -> Run:
    return Run(
        sequence=plan.sequence,
        folder=folder,
        first_minute=None,
        last_minute=None,
        commands=intake.commands,
        overdue=intake.overdue,
        asks=[piece for piece in plan.ranges if piece.topic == plan.source],
        rows=intake.rows,
    )


def _compacted(ledger: Ledger, folder: str, runs: list[Run], progress: Progress) -> list[Run]:
    """Return the runs before this one, the last of them put together where they have become many."""
    count = last_to_compact(runs)
    if not count:
        return runs
    progress(f"putting the records of {count} runs together")
    several = runs[-count:]
    one = put_together(several, f"{folder}/{EARLIER}")
    for table in one.tables:
        rows = ledger.read([run.folder for run in several if table in run.tables], table, RUNS[table])
        if table == "records":
            ledger.write_sorted(one.folder, table, rows, one.rows or 0)
        else:
            ledger.write(one.folder, table, rows)
    return [*runs[:-count], one]


def _anywhere(run: Run) -> Run:
    """Return the run before its minutes are known: it may have records of any."""
    return run.model_copy(update={"first_minute": 0, "last_minute": 1 << 40})
