"""A tenant's Redis that never ends to answer, or answers far too much."""

from __future__ import annotations

import tracemalloc
from time import monotonic

import pytest
from tests.support.operator.hostile_server import Answer, drip, hostile_server, pour

from delaytopic_operator.errors import RedisUnavailable
from delaytopic_operator.redis.client import RedisTarget, opened

MIB = 1 << 20


@pytest.mark.parametrize(
    "answer",
    [
        drip(b"$1000\r\n", b"x"),
        drip(b"*1000000\r\n", b":1\r\n"),
        pour(b"$536870912\r\n", b"x" * 65_536),
        pour(b"*1000000000\r\n", b":1\r\n" * 16_384),
        pour(b"", b"*1\r\n" * 16_384),
    ],
    ids=["slow text", "slow list", "large text", "large list", "lists in lists"],
)
def test_an_answer_that_does_not_end_is_given_up_early_and_costs_little(answer: Answer) -> None:
    with hostile_server(answer) as port:
        tracemalloc.start()
        began = monotonic()
        with (
            pytest.raises(RedisUnavailable) as refused,
            opened(RedisTarget("127.0.0.1", port, 0, tls=False), timeout_s=1) as client,
        ):
            client.info()
        took_s = monotonic() - began
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert str(refused.value).startswith(f"Redis at 127.0.0.1:{port} ")
    assert took_s < 5
    assert peak < 64 * MIB, f"{peak / MIB:.0f} MiB"
