from __future__ import annotations

import pytest

from delaytopic_relay.errors import BadRequest
from delaytopic_relay.pending.query import PendingQuery, parse_query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", PendingQuery()),
        ("limit=5", PendingQuery(limit=5)),
        ("limit=0", PendingQuery(limit=0)),
        ("limit=1000&dueBefore=1795269686270&partition=3", PendingQuery(1_795_269_686_270, 1_000, 3)),
    ],
)
def test_parameters_say_what_is_asked_for(text: str, query: PendingQuery) -> None:
    assert parse_query(text) == query


def test_without_a_time_none_was_asked_for() -> None:
    assert (parse_query("").asked_before_ms, parse_query("dueBefore=7").asked_before_ms) == (None, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit=1001", "limit='1001': it is a number of records, from 0 to 1000"),
        ("limit=-1", "limit='-1': it is a number of records, from 0 to 1000"),
        ("limit=", "limit='': it is a number of records, from 0 to 1000"),
        ("limit=1_0", "limit='1_0': it is a number of records, from 0 to 1000"),
        ("limit=٣", "limit='٣': it is a number of records, from 0 to 1000"),
        ("dueBefore=soon", "dueBefore='soon': it is epoch milliseconds, from 0 to 253402300800000"),
        ("partition=2147483648", "partition='2147483648': it is a source partition, from 0 to 2147483647"),
        ("limit=1&limit=2", "limit is given twice"),
        ("Limit=1", "'Limit' is no parameter of this page; there are dueBefore, limit and partition"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_query(text)

    assert str(refused.value) == message


def test_a_huge_parameter_is_refused_without_being_repeated_whole() -> None:
    with pytest.raises(BadRequest) as refused:
        parse_query("limit=" + "9" * 100_000)

    assert len(str(refused.value)) < 200
