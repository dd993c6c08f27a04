"""A relay's `/metrics`, read as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families
from tests.support.relay.process import RelayProcess

Series = tuple[str, tuple[tuple[str, str], ...]]


def samples(relay: RelayProcess) -> dict[Series, float]:
    """All samples, by name and sorted labels."""
    families = text_string_to_metric_families(relay.get("/metrics"))
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value_of(page: Mapping[Series, float], name: str, **labels: str) -> float:
    """The one sample of this name with (at least) these labels."""
    found = [value for (given, pairs), value in page.items() if given == name and labels.items() <= dict(pairs).items()]
    assert len(found) == 1, f"{len(found)} samples of {name} with {labels}"
    return found[0]


def histogram_between(
    before: Mapping[Series, float], after: Mapping[Series, float], name: str
) -> list[tuple[float, float]]:
    """Return what was added to a histogram: (upper bound, cumulative count), in order."""
    added = [
        (float(dict(pairs)["le"]), value - before.get((given, pairs), 0.0))
        for (given, pairs), value in after.items()
        if given == f"{name}_bucket"
    ]
    return sorted(added)


def quantile_bound(histogram: list[tuple[float, float]], share: float) -> float:
    """The smallest bucket bound that so large a share of the observations is within."""
    total = histogram[-1][1]
    assert total > 0, "nothing was observed"
    return next(bound for bound, count in histogram if count >= share * total)
