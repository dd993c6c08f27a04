"""Jobs: one command for many pending records, carried out in the background with progress that Kafka keeps."""

from __future__ import annotations

from delaytopic_cli.gateway.jobs.keeper import Jobs
from delaytopic_cli.gateway.jobs.log import JOBS_TOPIC, jobs_topic_plan, running_jobs

__all__ = ["JOBS_TOPIC", "Jobs", "jobs_topic_plan", "running_jobs"]
