"""A plan for a terminal. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

import yaml

from delaytopic_api.loading import ManifestDumper
from delaytopic_operator.offline import Change, Judgement, Outcome, RecurringOutcome, Step, TopicOutcome

WIDTH = 110
_SIGNS = {
    "Create": "+",
    "CreateTopic": "+",
    "WriteRecord": "+",
    "AddFinalizer": "+",
    "Delete": "-",
    "DeleteTopic": "-",
    "RemoveFinalizer": "-",
    "Purge": "-",
    "CancelRecord": "-",
}
_OTHER_SIGN = "~"
_WORDS = {
    "AddFinalizer": "finalizer",
    "RemoveFinalizer": "finalizer",
    "CreateTopic": "topic",
    "GrowTopic": "topic",
    "SetTopicConfig": "topic",
    "DeleteTopic": "topic",
    "Purge": "backlog",
    "WriteRecord": "record in",
    "ReplaceRecord": "record in",
    "CancelRecord": "record in",
}
_SAYS = {Judgement.NOTHING: "nothing to do", Judgement.CHANGES: "changes", Judgement.REFUSED: "refused"}


class _Dumper(ManifestDumper):
    """Shows the lines of a text as lines."""


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text_node)


def text_lines(outcome: Outcome, *, objects: bool) -> Iterator[str]:
    """Yield all of it; with `objects`, the documents that would be written."""
    compared = outcome.against.startswith("the cluster")
    for step in outcome.steps:
        yield from _step_lines(step, "", objects=objects)
    for topic in outcome.topics:
        yield from _topic_lines(topic, settings=not compared, objects=objects)
        yield ""
    for record in outcome.recurring:
        yield from _recurring_lines(record, settings=not compared, objects=objects)
        yield ""
    changed = outcome.judgement is not Judgement.NOTHING
    for note in [*outcome.notes, *(outcome.assumptions if changed else ())]:
        yield from _wrapped(f"Note: {note}.", "")
    yield summary(outcome)


def summary(outcome: Outcome) -> str:
    """Return the last line."""
    counts = Counter(outcome.judgements)
    parts = [f"{counts[each]} {words}" for each, words in _COUNTED if counts[each]]
    parts += [f"{len(outcome.steps)} changes of classes and namespaces"] if outcome.steps else []
    return f"Plan: {', '.join(parts) or 'nothing to do'}."


_COUNTED = (
    (Judgement.CHANGES, "with changes"),
    (Judgement.REFUSED, "refused"),
    (Judgement.NOTHING, "with nothing to do"),
)


def _topic_lines(topic: TopicOutcome, *, settings: bool, objects: bool) -> Iterator[str]:
    why = f" ({topic.reason})" if topic.reason else ""
    whence = "" if topic.in_files else ", which is in the cluster, with its class or namespace in these files"
    yield f"DelayTopic {topic.key}{whence}: {_SAYS[topic.judgement]}{why}"
    if topic.message:
        yield from _wrapped(topic.message, "  ")
    if settings and topic.in_force:
        yield "  In force:"
        yield from _in_force_lines(topic)
    if topic.steps:
        yield "  Would be done:" if settings else "  To be done:"
        for step in topic.steps:
            yield from _step_lines(step, "    ", objects=objects)
    if topic.relays and topic.judgement is not Judgement.NOTHING:
        yield f"  Relays: {topic.relays}"
    for note in topic.notes:
        yield from _wrapped(f"Note: {note}.", "  ")


def _recurring_lines(record: RecurringOutcome, *, settings: bool, objects: bool) -> Iterator[str]:
    why = f" ({record.reason})" if record.reason else ""
    whence = "" if record.in_files else ", which is in the cluster, and whose DelayTopic these files concern"
    yield f"RecurringRecord {record.key}{whence}: {_SAYS[record.judgement]}{why}"
    if record.message:
        yield from _wrapped(record.message, "  ")
    if record.steps:
        yield "  Would be done:" if settings else "  To be done:"
        for step in record.steps:
            yield from _step_lines(step, "    ", objects=objects)
    if record.next:
        yield f"  Next: {', '.join(record.next)}"
    for note in record.notes:
        yield from _wrapped(f"Note: {note}.", "  ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _in_force_lines(topic: TopicOutcome) -> Iterator[str]:
    rows = [(each.field.removeprefix("spec."), each.value, each.origin) for each in topic.in_force]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for field, value, origin in rows:
        yield f"    {field:<{widths[0]}}  {value:<{widths[1]}}  {origin}".rstrip()


def _step_lines(step: Step, indent: str, *, objects: bool) -> Iterator[str]:
    sign = _SIGNS.get(step.action, _OTHER_SIGN)
    word = f"{_WORDS[step.action]} " if step.action in _WORDS else ""
    detail = f"  ({step.detail})" if step.detail else ""
    restarts = "  (relays start anew, one after the other)" if step.restarts else ""
    yield f"{indent}{sign} {word}{step.object}{detail}{restarts}"
    yield from (f"{indent}    {_change_text(change)}" for change in step.changes)
    if objects and step.document is not None:
        text = yaml.dump(step.document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
        yield from (f"{indent}    | {line}" for line in text.splitlines())


def _change_text(change: Change) -> str:
    if change.before is None and change.after is None:
        return change.path
    before, after = change.before or "...", change.after or "..."
    return f"{change.path}: {before} -> {after}"
