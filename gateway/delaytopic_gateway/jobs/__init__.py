"""Jobs: one command for many pending records, carried out in the background with progress that Kafka keeps."""

from __future__ import annotations

from delaytopic_gateway.jobs.log import JOBS_TOPIC, jobs_topic_plan, running_jobs
from delaytopic_gateway.jobs.service import Jobs

__all__ = ["JOBS_TOPIC", "Jobs", "jobs_topic_plan", "running_jobs"]
