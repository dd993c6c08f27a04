"""The demo's closing words: the audit's verdict and the lateness, as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delaytopic_cli.client.lateness import histogram, milliseconds_text, summarize
from delaytopic_cli.judge.verdict import Lateness, Outage, Verdict

_EXAMPLES = 3
_NAME_WIDTH = 36


def summary_lines(verdict: Verdict, arrivals: Sequence[Lateness], outage: Outage) -> Iterator[str]:
    """The whole summary; `arrivals` are the latenesses that a consumer saw, which waits for each commit."""
    faults = verdict.faults
    yield f"{'delivered':<14}{verdict.delivered:>8,}"
    for name in ("lost", "twice", "early"):
        yield f"{name:<14}{len(faults.get(name, ())):>8,}"
    yield f"{'cancelled':<14}{verdict.cancelled:>8,}"
    yield f"{'replaced':<14}{verdict.replaced:>8,}"
    yield f"{'dead-lettered':<14}{verdict.dead_lettered:>8,}"
    yield ""
    yield from _lateness_lines(verdict.lateness, arrivals, outage)
    for name, coordinates in faults.items():
        examples = ", ".join(map(str, coordinates[:_EXAMPLES]))
        yield f"FAULT {name.replace('_', ' ')}: {len(coordinates)}, such as {examples}"
    yield "every record arrived once, and none early" if verdict.is_clean else "THE AUDIT FOUND FAULTS"


def undisturbed(lateness: Sequence[Lateness], outage: Outage) -> list[int]:
    """The lateness of all records but those that were waiting, due and not yet sent, at any time of the outage."""
    return [
        item.late_ms for item in lateness if item.due_ms > outage.end_ms or item.due_ms + item.late_ms < outage.start_ms
    ]


def _lateness_lines(sent: Sequence[Lateness], arrivals: Sequence[Lateness], outage: Outage) -> Iterator[str]:
    everything = [item.late_ms for item in sent]
    outage_text = f"{(outage.end_ms - outage.start_ms) / 1000:.1f} s outage"
    yield f"{'lateness':<{_NAME_WIDTH}}{'records':>8}  {'p50':>9}  {'p99':>9}  {'max':>9}"
    yield _row("sent by the relay", everything)
    yield _row(f"  apart from the {outage_text}", undisturbed(sent, outage))
    yield _row("read by a read_committed consumer", [item.late_ms for item in arrivals])
    yield _row(f"  apart from the {outage_text}", undisturbed(arrivals, outage))
    yield ""
    yield "sent by the relay:"
    yield from histogram(everything)
    yield ""
    yield f"sent by the relay, apart from the {outage_text}:"
    yield from histogram(undisturbed(sent, outage))
    yield ""


def _row(name: str, lateness_ms: Sequence[int]) -> str:
    figures = summarize(lateness_ms)
    p50, p99, most = map(milliseconds_text, (figures.p50_ms, figures.p99_ms, figures.max_ms))
    return f"{name:<{_NAME_WIDTH}}{figures.count:>8,}  {p50:>9}  {p99:>9}  {most:>9}"
