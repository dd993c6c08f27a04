from __future__ import annotations

import pytest

from delaytopic_relay.errors import BadRequest
from delaytopic_relay.pending.query import PendingQuery, Selection, parse_query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", PendingQuery()),
        ("limit=5", PendingQuery(limit=5)),
        ("limit=0", PendingQuery(limit=0)),
        ("limit=1000&dueBefore=1795269686270&partition=3", PendingQuery(1_795_269_686_270, 1_000, 3)),
        ("after=1795269686270:3:17", PendingQuery(selection=Selection((1_795_269_686_270, 3, 17)))),
        ("dueFrom=7", PendingQuery(selection=Selection((7, -1, -1)))),
        ("dueFrom=7&after=8:0:1", PendingQuery(selection=Selection((8, 0, 1)))),
        ("dueFrom=9&after=8:0:1", PendingQuery(selection=Selection((9, -1, -1)))),
        ("id=a%20b&key=", PendingQuery(selection=Selection(id=b"a b", key=b""))),
        ("idBase64=/w==&keyBase64=AA==", PendingQuery(selection=Selection(id=b"\xff", key=b"\x00"))),
        ("idPrefix=order-&keyPrefix=c", PendingQuery(selection=Selection(id_prefix=b"order-", key_prefix=b"c"))),
        ("contents=true", PendingQuery(contents=True)),
        ("maxBytes=65536", PendingQuery(most_bytes=65_536)),
    ],
)
def test_parameters_say_what_is_asked_for(text: str, query: PendingQuery) -> None:
    assert parse_query(text) == query


def test_without_a_time_none_was_asked_for() -> None:
    assert (parse_query("").asked_before_ms, parse_query("dueBefore=7").asked_before_ms) == (None, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit=10001", "limit='10001': it is a number of records, from 0 to 10000"),
        ("limit=-1", "limit='-1': it is a number of records, from 0 to 10000"),
        ("limit=", "limit='': it is a number of records, from 0 to 10000"),
        ("limit=1_0", "limit='1_0': it is a number of records, from 0 to 10000"),
        ("limit=٣", "limit='٣': it is a number of records, from 0 to 10000"),
        ("dueBefore=soon", "dueBefore='soon': it is epoch milliseconds, from 0 to 253402300800000"),
        ("partition=2147483648", "partition='2147483648': it is a source partition, from 0 to 2147483647"),
        ("limit=1&limit=2", "limit is given twice"),
        ("after=8", "after='8': it is due time, partition and offset, such as 1795269686270:3:17"),
        ("after=8:0:x", "after='x': it is a source offset, from 0 to 9223372036854775807"),
        ("idBase64=%2A", "idBase64='*': it is no base64"),
        ("id=a&idBase64=YQ==", "id and idBase64 are given: one of them is enough"),
        ("maxBytes=0", "maxBytes='0': it is a number of bytes, from 1 to 4194304"),
        ("contents=yes", "contents='yes': it is true or false"),
        (
            "Limit=1",
            "'Limit' is no parameter of this page; there are dueFrom, dueBefore, limit, partition, after, id, "
            "idBase64, idPrefix, key, keyBase64, keyPrefix, contents and maxBytes",
        ),
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
