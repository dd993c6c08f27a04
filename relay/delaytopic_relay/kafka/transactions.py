"""Edge: how a producer gets its id for transactions, and what the client raises meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Producer

from delaytopic_relay.errors import KafkaUnavailable

INIT_TIMEOUT_S = 15.0
ENDING_S = 3.0
"""A transaction that does not end in so long waits for a partition that does not answer."""
ASKING_S = 0.02
LONGEST_ASKING_S = 0.8
"""The timeouts of the first attempt to get a producer id and of later ones, each twice as long as the one before."""


def init_transactions(producer: Producer) -> None:
    """Get a producer id. Raises what the client raises; soon, if a transaction is decided and does not end.

    Where it cannot ask yet, as there is no connection, or is told to come back, as the broker still aborts a
    transaction, the client asks again half a second later; told to go on, it asks at once.
    """
    give_up_s, timeout_s = time.monotonic() + INIT_TIMEOUT_S, ASKING_S
    while True:
        try:
            producer.init_transactions(timeout_s)
            return
        except KafkaException as error:
            reason, now_s = error.args[0], time.monotonic()
            unended = (
                reason.code() == KafkaError.CONCURRENT_TRANSACTIONS and now_s > give_up_s - INIT_TIMEOUT_S + ENDING_S
            )
            if unended or not reason.retriable() or now_s > give_up_s:
                raise
        timeout_s = min(2 * timeout_s, LONGEST_ASKING_S)


@contextmanager
def raised_by_the_client() -> Iterator[None]:
    """A fatal error is raised out of whichever call serves callbacks, as a mere cause if one is called after it."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


@contextmanager
def naming(owner: str) -> Iterator[None]:
    """Name the owner in what the client raises, as `KafkaUnavailable`."""
    try:
        yield
    except KafkaException as error:
        raise KafkaUnavailable(f"transactions of {owner}: {error.args[0].str()}") from error
