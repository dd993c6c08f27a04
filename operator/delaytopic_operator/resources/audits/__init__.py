"""The objects that audit DelayTopics: a CronJob for all of a class, or for those of a namespace. Pure builders."""

from __future__ import annotations

from delaytopic_operator.resources.audits.cron_job import audit_objects, cron_job_of, schedule_of
from delaytopic_operator.resources.audits.pod import report_address

__all__ = ["audit_objects", "cron_job_of", "report_address", "schedule_of"]
