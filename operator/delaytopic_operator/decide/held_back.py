"""A source that relays can read no further, as a producer has a transaction open in it: whose fault it is. Pure."""

from __future__ import annotations

from delaytopic_api.documents import ConditionType
from delaytopic_operator.model.conditions import TRUE, Condition
from delaytopic_operator.observe.observation import Observation


def held_back(seen: Observation) -> list[Condition]:
    """Return SourceHeldBack while a transaction has been open for longer than usual; nothing otherwise.

    Ready does not depend on it: it is the producer's, and relays do all that they can.
    """
    found = seen.topics.open_transactions if seen.topics is not None else {}
    lasting = {number: each for number, each in sorted(found.items()) if each.lasts(seen.now_ms)}
    if not lasting:
        return []
    first = min(lasting, key=lambda number: lasting[number].since_ms)
    many = f"{len(lasting)} source partitions (the first: {first}) are read no further"
    message = f"{many}: {lasting[first].describe()}"
    return [Condition(ConditionType.SOURCE_HELD_BACK, TRUE, "TransactionOpen", message)]
