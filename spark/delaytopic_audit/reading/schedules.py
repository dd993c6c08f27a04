"""Plain schedules of the native dialect from records as the connector hands them over, by functions of SQL.

Plain is a record without a control header, or with one `deliver-at` or `deliver-after` in digits and no other: most
are. The dialect itself reads the rest, and would read the same from these; in doubt a record is not plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sf

from delaytopic_api.records import CONTROL_HEADERS, DELIVER_AFTER, DELIVER_AT
from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect
from delaytopic_audit.model.manifest import RulesFrom
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.generations import by_partition, pieces, read_rules
from delaytopic_audit.reading.receipts import LOG_APPEND_TIME, UNREADABLE
from delaytopic_audit.tables.schemas import READ
from delaytopic_relay.core import Rules
from delaytopic_relay.dialects import rules_of

_MOST_HEADERS: Final = 64
"""Fewer than a relay takes."""
_LATEST_MS: Final = 1 << 45
"""The year 3084: with the longest delay that can be allowed, still an instant."""
_NUMBER: Final = r"\A[0-9]{1,18}\z"
"""Digits of a number that 64 bits hold, whatever they are."""
_LAST_OFFSET: Final = (1 << 63) - 1


def dialects_of(config: RelayConfig, generations: Sequence[RulesFrom]) -> set[Dialect]:
    """Return the dialects in which records of the source may be."""
    return {rules.dialect for rules, _ in _rules(config, generations)}


def plain_schedule(config: RelayConfig, generations: Sequence[RulesFrom] = ()) -> Column:
    """Return a record's row of the extract as a struct, if it is plain by the rules of its offset; null for others."""
    native = [(rules, where) for rules, where in _rules(config, generations) if rules.dialect is Dialect.NATIVE]
    due_ms = sf.coalesce(*(sf.when(where, _due_ms(rules)) for rules, where in native))
    columns = {
        "kind": sf.lit(int(Kind.SCHEDULE)),
        "partition": sf.col("partition"),
        "offset": sf.col("offset"),
        "due_ms": due_ms,
        "append_ms": sf.col("timestamp_ms"),
        "by_broker": sf.col("timestampType") == LOG_APPEND_TIME,
        "topic": sf.lit(config.target.topic),
    }
    row = (columns.get(field.name, sf.lit(None)).cast(field.dataType).alias(field.name) for field in READ)
    return sf.when(due_ms.isNotNull(), sf.struct(*row))


def _rules(config: RelayConfig, generations: Sequence[RulesFrom]) -> Iterator[tuple[Rules, Column]]:
    """Yield rules that are known, each with the condition that they are those of a record."""
    texts = {each.rules for each in generations}
    if not texts:
        yield rules_of(config), sf.lit(True)
    for text in sorted(texts):
        known = read_rules(text, config.target.topic)
        if known is not None:
            yield known[0], sf.lit(True) if len(texts) == 1 else _is_read_by(text, generations)


def _is_read_by(text: str, generations: Sequence[RulesFrom]) -> Column:
    return reduce(
        or_,
        (
            (sf.col("partition") == partition) & sf.col("offset").between(start, end - 1)
            for partition, its in by_partition(generations).items()
            for start, end, each in pieces(its, 0, _LAST_OFFSET)
            if each.rules == text
        ),
    )


def _due_ms(rules: Rules) -> Column:
    """Return the due time of plain records; null for others."""
    implied_ms = rules.default_delay_ms if rules.delay_ms is None else rules.delay_ms
    at_ms = sf.col("timestamp_ms")
    controls = sf.filter("headers", lambda header: _name(header).isin(*sorted(CONTROL_HEADERS)))
    count, control = sf.coalesce(sf.size(controls), sf.lit(0)), sf.try_element_at(controls, sf.lit(1))
    text = control["value"].cast("string")
    number = sf.when(text.rlike(_NUMBER), text.try_cast("long"))
    asked_ms = sf.when(_name(control) == DELIVER_AT, number).when(_name(control) == DELIVER_AFTER, at_ms + number)
    due_ms = sf.when(count == 0, at_ms + (implied_ms or 0))
    if rules.delay_ms is None:
        due_ms = due_ms.when((count == 1) & (asked_ms - at_ms <= rules.max_delay_ms), asked_ms)
    return sf.when(_has_timestamp(at_ms) & _is_readable(), due_ms)


def _name(header: Column) -> Column:
    return sf.substring_index(header["key"], "\0", 1)


def _has_timestamp(at_ms: Column) -> Column:
    return (sf.col("timestampType") >= 0) & at_ms.between(0, _LATEST_MS)


def _is_readable() -> Column:
    unreadable = sf.exists("headers", lambda header: sf.contains(header["key"], sf.lit(UNREADABLE)))
    few = sf.coalesce(sf.size("headers"), sf.lit(0)) <= _MOST_HEADERS
    return ~sf.coalesce(unreadable, sf.lit(False)) & few
