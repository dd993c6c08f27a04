"""The pages of jobs: what would be done, how much of it is, and all of a DelayTopic."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.client.jobs import SKIPPED_WORDS, action_text
from delaytopic_gateway.console.pages import SEARCH, Console, form_of, path_of
from delaytopic_gateway.documents import delay_topic_document
from delaytopic_gateway.jobs.documents import JobDocument, NewJob, job_document
from delaytopic_gateway.jobs.job import GUARD_MS, Action, State
from delaytopic_gateway.jobs.rest import demand_jobs
from delaytopic_gateway.jobs.service import Jobs
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_gateway.service.served_topics import ServedTopic

REFRESH_S: Final = 2
_TIMES: Final = ("deliverAt", "deliverAfter", "moveBy")
_DONE: Final = {Action.CANCEL: "cancelled", Action.MOVE: "moved", Action.RELEASE: "released"}


class JobPages:
    """The pages over the jobs of a gateway."""

    def __init__(self, console: Console, jobs: Jobs | None) -> None:
        """`console` makes the pages; None for a gateway that has no place to keep jobs."""
        self._console = console
        self._jobs = jobs

    def list_jobs(self, served: ServedTopic) -> Response:
        """Return the page of all jobs of a DelayTopic."""
        found = [(job, self._what(job)) for job in self._documents(served)]
        return self._console.page("jobs.html", jobs=found, **self._common(served))

    def job(self, served: ServedTopic, job_id: str) -> Response:
        """Return the page of a job, which shows its progress."""
        job = job_document(demand_jobs(self._jobs).job(served, job_id), served)
        return self._console.page(
            "jobs_one.html",
            job=job,
            what=self._what(job),
            selector=_selector(job.selector.model_dump(by_alias=True, exclude_none=True)),
            done_word=_DONE[job.action],
            skipped=[(SKIPPED_WORDS[reason], count) for reason, count in job.skipped.items()],
            runs=job.state is State.RUNNING,
            refresh_s=REFRESH_S,
            **self._common(served),
        )

    def confirm(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page that asks whether a job is meant so, with the number of records that match now."""
        given = {name: query[name] for name in ("action", *_TIMES) if query.get(name)}
        if given.get("action") != Action.MOVE:
            given = {name: text for name, text in given.items() if name not in _TIMES}
        selector: dict[str, Any] = {name: query[name] for name in SEARCH if query.get(name)}
        for name in ("dueFrom", "dueBefore"):
            if name in selector:
                selector[name] = self._console.time_ms(name, selector[name])
        new = NewJob.model_validate({**given, "selector": selector, "id": uuid.uuid4().hex[:12]})
        order = new.to_order()
        count = demand_jobs(self._jobs).count(served, order)
        return self._console.page(
            "jobs_confirm.html",
            fields={**given, **selector, "id": new.id},
            what=action_text(new.action, order.due_ms, order.after_ms, order.shift_ms, self._console.clock),
            action=new.action,
            count=count,
            guard_s=GUARD_MS // 1_000,
            selector=_selector(selector),
            **self._common(served),
        )

    def create(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Begin a job, and go to its page."""
        given = {name: form[name] for name in ("id", "action", *_TIMES) if form.get(name)}
        selector: dict[str, Any] = {name: form[name] for name in SEARCH if form.get(name)}
        order = NewJob.model_validate({**given, "selector": selector}).to_order()
        return _to_job(served, demand_jobs(self._jobs).create(served, order).id)

    def stop(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Stop a job, and go to its page."""
        return _to_job(served, demand_jobs(self._jobs).stop(served, form.get("id", "")).id)

    def _documents(self, served: ServedTopic) -> list[JobDocument]:
        return [job_document(job, served) for job in demand_jobs(self._jobs).all(served)]

    def _what(self, job: JobDocument) -> str:
        return action_text(job.action, job.deliver_at, None, job.move_by_ms, self._console.clock)

    @staticmethod
    def _common(served: ServedTopic) -> dict[str, Any]:
        return {"path": path_of(served), "topic": delay_topic_document(served, None), "writable": served.writable}


def _selector(given: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return the conditions: a name, a value, and whether it is a time."""
    names = {
        "dueFrom": "Due from",
        "dueBefore": "Due before",
        "idPrefix": "Id begins with",
        "keyPrefix": "Key begins with",
        "partition": "Source partition",
    }
    return [(names[name], value, name.startswith("due")) for name, value in given.items()]


def _to_job(served: ServedTopic, job_id: str) -> Response:
    return RedirectResponse(f"{path_of(served)}/job?id={job_id}", 303)


def job_pages_router(pages: JobPages, gateway: Gateway) -> APIRouter:
    """Return the routes of the pages; to be asked before those of the console, whose forms take any name."""
    router = APIRouter(prefix="/delaytopics/{namespace}/{name}", include_in_schema=False)
    actions = {"jobs": pages.create, "job": pages.stop}

    @router.get("/jobs")
    def list_jobs(namespace: str, name: str) -> Response:
        return pages.list_jobs(gateway.served(namespace, name))

    @router.get("/jobs/new")
    def confirm(namespace: str, name: str, request: Request) -> Response:
        return pages.confirm(gateway.served(namespace, name, Right.WRITE), request.query_params)

    @router.get("/job")
    def job(namespace: str, name: str, request: Request) -> Response:
        return pages.job(gateway.served(namespace, name), request.query_params.get("id", ""))

    async def act(namespace: str, name: str, request: Request) -> Response:
        form = await form_of(request)
        served = await run_in_threadpool(gateway.served, namespace, name, Right.WRITE)
        return await run_in_threadpool(actions[request.url.path.rpartition("/")[2]], served, form)

    for last in actions:
        router.add_api_route(f"/{last}", act, methods=["POST"])
    return router
