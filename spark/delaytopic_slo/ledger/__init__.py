"""Tables that outlive a run."""

from __future__ import annotations

from delaytopic_slo.ledger.ledger import Ledger

__all__ = ["Ledger"]
