"""Tables that outlive a run."""

from __future__ import annotations

from delaytopic_audit.ledger.ledger import Ledger

__all__ = ["Ledger"]
