"""The number of relays: pure, from all that relays know of their future. `decision.decide` is the way in.

need        the due curve, the relays that it needs, the sizes that help, the lateness ahead
signals     what relays and Kafka say of one moment
capacity    rates, arrivals and starts, measured
state       what is remembered from poll to poll
assessment  the settings in force, and what the signals ask for under them
rules       the recommendation, by the first rule that speaks
conditions  AutoscalingActive and CapacitySufficient
decision    the number of relays, its sentence and its memory
explain     `kubectl delaytopic why-scale`, in the words of `wording`
"""

from __future__ import annotations

from delaytopic_operator.scaling.explain import as_text

__all__ = ["as_text"]
