"""What people want of scaling: the settings in force and the annotations that hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from delaytopic_api.documents import AutoscalingSettings, Settings
from delaytopic_api.values import Suspend
from delaytopic_operator.scaling.reading import POLL_MS
from delaytopic_operator.scaling.sizes import Sizes

PAUSED_SCALE_IN = "delaytopic.dev/paused-scale-in"
PAUSED_SCALE_OUT = "delaytopic.dev/paused-scale-out"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """All that `decide` has to know of a DelayTopic's spec and annotations."""

    autoscaling: AutoscalingSettings
    precision_ms: int
    suspend: Suspend = Suspend.NONE
    paused_scale_in: bool = False
    paused_scale_out: bool = False
    poll_ms: int = POLL_MS

    @classmethod
    def of(cls, settings: Settings, annotations: Mapping[str, str]) -> Self:
        """From what is in force; an annotation counts when it says "true"."""
        return cls(
            autoscaling=settings.autoscaling,
            precision_ms=settings.precision.ms,
            suspend=settings.suspend,
            paused_scale_in=annotations.get(PAUSED_SCALE_IN, "").strip().lower() == "true",
            paused_scale_out=annotations.get(PAUSED_SCALE_OUT, "").strip().lower() == "true",
        )

    @property
    def delivers(self) -> bool:
        """Whether due records leave."""
        return self.suspend not in (Suspend.DELIVERY, Suspend.ALL)

    @property
    def takes_in(self) -> bool:
        """Whether new records are taken in."""
        return self.suspend not in (Suspend.INGEST, Suspend.ALL)

    @property
    def utilization(self) -> float:
        """The share of a relay's capacity to plan with."""
        return float(self.autoscaling.target_utilization.ratio)

    def sizes(self, partitions: int) -> Sizes:
        """The sizes that the fleet may have."""
        return Sizes(partitions, self.autoscaling.min_replicas, self.autoscaling.max_replicas)
