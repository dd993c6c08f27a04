"""Documents of the audit: words, rules, manifest, report."""

from __future__ import annotations

from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.model.rules import Exclusion, Rules, Threshold, default_grace_ms

__all__ = ["Exclusion", "Report", "Rules", "Threshold", "Verdict", "default_grace_ms"]
