"""The REST of jobs, described by OpenAPI at /openapi.json."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Response

from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.errors import KafkaUnreachableError
from delaytopic_gateway.jobs.documents import JobCount, JobDocument, NewJob, job_document
from delaytopic_gateway.jobs.service import Jobs
from delaytopic_gateway.links import link
from delaytopic_gateway.rest.delay_topics import ERRORS, Name, Namespace
from delaytopic_gateway.service.gateway import Gateway

JobIdInPath = Annotated[str, Path(max_length=64)]


def jobs_rest(gateway: Gateway, jobs: Jobs | None) -> APIRouter:
    """Return the routes of the jobs of DelayTopics; None for a gateway that has no place to keep them."""
    base = "/v1/delaytopics/{namespace}/{name}/jobs"
    router = APIRouter(prefix=base, tags=["jobs"], responses=ERRORS)

    @router.post("", summary="Cancel, move or release all pending records that match", status_code=202)
    def create(namespace: Namespace, name: Name, new: NewJob, response: Response) -> JobDocument | JobCount:
        served = gateway.served(namespace, name, Right.WRITE)
        order = new.to_order()
        if new.dry_run:
            response.status_code = 200
            found = demand_jobs(jobs).count(served, order)
            return JobCount(matched=found.matched, complete=found.complete)
        job = demand_jobs(jobs).create(served, order)
        place = f"v1/delaytopics/{quote(namespace, safe='')}/{quote(name, safe='')}/jobs/{job.id}"
        response.headers["Location"] = link(place)
        return job_document(job, served)

    @router.get("", summary="List jobs, the last one first")
    def list_jobs(namespace: Namespace, name: Name) -> list[JobDocument]:
        served = gateway.served(namespace, name)
        return [job_document(job, served) for job in demand_jobs(jobs).all(served)]

    @router.get("/{id}", summary="Read a job, with how much of it is done")
    def read(namespace: Namespace, name: Name, id: JobIdInPath) -> JobDocument:
        served = gateway.served(namespace, name)
        return job_document(demand_jobs(jobs).job(served, id), served)

    @router.delete("/{id}", summary="Stop a job; what it has written stays", status_code=202)
    def stop(namespace: Namespace, name: Name, id: JobIdInPath) -> JobDocument:
        served = gateway.served(namespace, name, Right.WRITE)
        return job_document(demand_jobs(jobs).stop(served, id), served)

    return router


def demand_jobs(jobs: Jobs | None) -> Jobs:
    """Return them. Raises `KafkaUnreachableError` for a gateway that has no place to keep them."""
    if jobs is None:
        raise KafkaUnreachableError("this gateway has no topic for jobs")
    return jobs
