"""The objects that audit DelayTopics: a CronJob for each, or one Deployment for all of a class. Pure builders."""

from __future__ import annotations

from delaytopic_operator.resources.audits.cron_job import audit_objects
from delaytopic_operator.resources.audits.deployment import class_audit_objects, is_class_audit
from delaytopic_operator.resources.audits.pod import report_address

__all__ = ["audit_objects", "class_audit_objects", "is_class_audit", "report_address"]
