"""A gateway's jobs as the command line asks for them and shows them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from delaytopic_gateway.client.pending import span_text
from delaytopic_gateway.client.time_text import clock_text, duration, instant_ms
from delaytopic_process.errors import InputError

ACTIONS: Final = {"cancel": "Cancel", "move": "Move", "release": "Release"}
"""The actions of a job, by the words of the command line for them."""
RUNNING: Final = "Running"
DONE: Final = "Done"
SKIPPED_WORDS: Final = {
    "noId": "without an id",
    "tooNear": "due too soon",
    "expires": "expire before the new time",
    "tooFar": "beyond schedule.maxDelay",
    "tooLarge": "too large for Kafka",
    "gone": "gone before their turn",
}
_SELECTOR_WORDS: Final = {
    "dueFrom": "due from",
    "dueBefore": "due before",
    "idPrefix": "id begins with",
    "keyPrefix": "key begins with",
    "partition": "source partition",
}
_TABLE: Final = "{:<{}}  {:<{}}  {:<9}  {:>11}  {:>11}  {:>9}  {}"
Job = Mapping[str, Any]
"""The gateway's document of a job."""


def new_job(
    job_id: str | None,
    action: str,
    selector: Mapping[str, Any],
    *,
    everything: bool,
    after: str | None,
    at: str | None,
    by: str | None,
) -> dict[str, Any]:
    """Return the document that asks a gateway for a job. Raises InputError.

    `selector` has what is given of the gateway's fields; all records are meant only with `everything`.
    """
    chosen = {name: value for name, value in selector.items() if value is not None}
    if everything == bool(chosen):
        raise InputError(
            "say which records: by --due-from, --due-before, --id-prefix, --key-prefix, --partition; or --all"
        )
    times = {
        "deliverAfter": str(duration(after)) if after is not None else None,
        "deliverAt": instant_ms(at) if at is not None else None,
        "moveBy": _shift(by) if by is not None else None,
    }
    given = {name: value for name, value in times.items() if value is not None}
    if len(given) != (action == "move"):
        raise InputError("move takes one of --after, --at and --by; cancel and release take none")
    return {"id": job_id, "action": ACTIONS[action], "selector": chosen, **given}


def _shift(text: str) -> str:
    sign = "-" if text.startswith("-") else ""
    return f"{sign}{duration(text.removeprefix('-'))}"


def count_text(count: Mapping[str, Any]) -> str:
    """Return the answer of a dry run as a sentence."""
    matched = int(count["matched"])
    more = "" if count["complete"] else "at least "
    return f"{more}1 record matches now" if matched == 1 else f"{more}{matched:,} records match now"


def action_text(
    action: str, due_ms: int | None, after_ms: int | None, shift_ms: int | None, clock: Callable[[int], str]
) -> str:
    """Return what a job does, in words; `clock` shows a time."""
    if action != "Move":
        return {"Cancel": "Cancel", "Release": "Release now"}[action]
    if after_ms is not None:
        return f"Move to {span_text(after_ms)} from now"
    if due_ms is not None:
        return f"Move to {clock(due_ms)}"
    later = (shift_ms or 0) >= 0
    return f"Move by {span_text(abs(shift_ms or 0))}, {'later' if later else 'earlier'}"


def progress_text(job: Job) -> str:
    """Return how far a job is, in a line."""
    waits = f"; {job['message']}" if job["message"] else ""
    if job["expected"] is None:
        return f"{job['state']}: counting{waits}"
    done = f"{job['matched']:,} of {job['expected']:,}"
    skipped = sum(job["skipped"].values())
    return f"{job['state']}: {done}, {job['written']:,} written, {skipped:,} skipped{waits}"


def job_lines(job: Job, *, now_ms: int) -> Iterator[str]:
    """Yield a job as lines for people."""
    yield f"{job['id']}  {progress_text(job)}"
    yield f"action   {_action(job, now_ms)}"
    yield f"records  {_selector(job['selector'], now_ms)}"
    asked_by = f" by {job['createdBy']}" if job["createdBy"] else ""
    yield f"asked    {clock_text(job['createdMs'], now_ms=now_ms)}{asked_by}"
    if job["endedMs"] is not None:
        yield f"ended    {clock_text(job['endedMs'], now_ms=now_ms)}"
    elif job["doneUpToMs"] is not None:
        yield f"done     what is due before {clock_text(job['doneUpToMs'], now_ms=now_ms)}"
    yield from (f"skipped  {count:,} {SKIPPED_WORDS.get(reason, reason)}" for reason, count in job["skipped"].items())
    yield from (f"note     {note}" for note in job["notes"])


def table_lines(jobs: Sequence[Job], *, now_ms: int) -> Iterator[str]:
    """Yield a line for each job."""
    rows = [
        (
            job["id"],
            _action(job, now_ms),
            job["state"],
            "-" if job["expected"] is None else f"{job['expected']:,}",
            f"{job['written']:,}",
            f"{sum(job['skipped'].values()):,}",
            clock_text(job["createdMs"], now_ms=now_ms),
        )
        for job in jobs
    ]
    head = ("ID", "ACTION", "STATE", "MATCHING", "WRITTEN", "SKIPPED", "ASKED")
    first, second = (max(len(row[place]) for row in (head, *rows)) for place in range(2))
    yield from (_TABLE.format(name, first, action, second, *others) for name, action, *others in (head, *rows))


def _action(job: Job, now_ms: int) -> str:
    return action_text(
        job["action"], job["deliverAt"], None, job["moveByMs"], lambda due_ms: clock_text(due_ms, now_ms=now_ms)
    )


def _selector(selector: Mapping[str, Any], now_ms: int) -> str:
    given = [
        f"{word} {clock_text(selector[name], now_ms=now_ms) if name.startswith('due') else selector[name]}"
        for name, word in _SELECTOR_WORDS.items()
        if selector.get(name) is not None
    ]
    return ", ".join(given) or "all"
