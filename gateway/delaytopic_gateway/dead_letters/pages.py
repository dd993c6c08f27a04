"""The console's pages of dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from delaytopic_api.values import Dialect
from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.client.dead_letters import Place, dead_letters_text
from delaytopic_gateway.console.pages import PAGE, Console, form_of, is_number, path_of, views_of
from delaytopic_gateway.dead_letters.documents import Resend, ResendResult, is_token
from delaytopic_gateway.dead_letters.service import Letters
from delaytopic_gateway.kafka.window import parse_cursor
from delaytopic_gateway.service.control_records import content_bytes
from delaytopic_gateway.service.gateway import hidden_note
from delaytopic_gateway.service.served_topics import ServedTopic

MOST_HEADERS: Final = 256
_COUNTS: Final = ("sent", "before", "left")


class DeadLetterPages:
    """The pages over the dead letters of a gateway."""

    def __init__(self, console: Console, letters: Letters) -> None:
        """`console` has the templates."""
        self._console = console
        self._letters = letters

    def all(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page of the newest dead letters, of one reason if it is named."""
        reason, after = query.get("reason", ""), query.get("after", "")
        before = parse_cursor(after) if after else None
        found = self._letters.page(served, {reason} if reason else set(), before, PAGE)
        chosen = {"reason": reason} if reason else {}
        return self._console.page(
            "dead_letters.html",
            path=path_of(served),
            served=served,
            page=found,
            reason=reason,
            may_send=served.writable and (not reason or is_token(reason)),
            filters={each: urlencode({"reason": each}) for each in found.reasons},
            next_page=f"{letters_path(served)}?{urlencode({**chosen, 'after': found.next})}" if found.next else None,
            said=said(query),
        )

    def one(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page of a dead letter."""
        letter = self._letters.at(served, Place.parse(query.get("place", "")))
        content = letter.content
        value = content_bytes(content.value, content.value_base64) if content is not None else None
        return self._console.page(
            "dead_letter.html",
            path=path_of(served),
            served=served,
            letter=letter,
            takes_times=takes_times(served),
            views=[*views_of(value)],
            headers=content.headers[:MOST_HEADERS] if content is not None else [],
            further_headers=max(0, len(content.headers) - MOST_HEADERS) if content is not None else 0,
            hidden=None if served.writable else hidden_note(served),
        )

    def preview(self, served: ServedTopic, query: Mapping[str, str]) -> Response:
        """Return the page that tells what would be sent."""
        reason = query.get("reason", "")
        chosen = {"reasons": [reason]} if reason else {"all": True}
        result = self._letters.send(served, Resend.model_validate({**chosen, "dryRun": True}))
        return self._console.page(
            "resend.html",
            path=path_of(served),
            served=served,
            result=result,
            reason=reason,
            takes_times=takes_times(served),
        )

    def send(self, served: ServedTopic, form: Mapping[str, str]) -> Response:
        """Send one or those of a reason, and go back to the list."""
        place, reason = form.get("place", ""), form.get("reason", "")
        times = {name: form[name] for name in ("deliverAfter", "deliverAt") if form.get(name)}
        chosen = {"places": [place]} if place else {"reasons": [reason]} if reason else {"all": True}
        result = self._letters.send(served, Resend.model_validate({**chosen, **times}))
        told = {"reason": reason} if reason else {}
        return RedirectResponse(f"{letters_path(served)}?{urlencode({**told, **_told(result)})}", 303)


def letters_path(served: ServedTopic) -> str:
    """Return the address of the page of a DelayTopic's dead letters."""
    return f"{path_of(served)}/dead-letters"


def takes_times(served: ServedTopic) -> bool:
    """Tell whether dead letters can be given another time."""
    return served.dialect is Dialect.NATIVE and not served.fixed_delay


def _told(result: ResendResult) -> dict[str, str]:
    counts = (result.sent, len(result.sent_before), result.incomplete_count)
    return {
        **{name: str(count) for name, count in zip(_COUNTS, counts, strict=True)},
        **({} if result.complete else {"more": "yes"}),
    }


def said(query: Mapping[str, str]) -> str | None:
    """Return the sentences on what was sent, from the numbers in an address; None for none."""
    sent, before, left = (int(text) if is_number(text := query.get(name, "")) else None for name in _COUNTS)
    if sent is None:
        return None
    sentences = [f"{dead_letters_text(sent)} {'was' if sent == 1 else 'were'} sent again."]
    if before:
        sentences.append(f"{dead_letters_text(before)} had been sent again before.")
    if left:
        lacks = "it lacks" if left == 1 else "they lack"
        sentences.append(f"{dead_letters_text(left)} cannot be sent again from here: {lacks} a part.")
    if query.get("more"):
        sentences.append("There are more: send again to go on.")
    return " ".join(sentences)


def dead_letters_router(pages: DeadLetterPages, letters: Letters) -> APIRouter:
    """Return the routes of the pages."""
    router = APIRouter(prefix="/delaytopics/{namespace}/{name}/dead-letters", include_in_schema=False)
    gateway = letters.gateway

    @router.get("")
    def all_letters(namespace: str, name: str, request: Request) -> Response:
        return pages.all(gateway.served(namespace, name), request.query_params)

    @router.get("/letter")
    def one_letter(namespace: str, name: str, request: Request) -> Response:
        return pages.one(gateway.served(namespace, name), request.query_params)

    @router.get("/resend")
    def preview(namespace: str, name: str, request: Request) -> Response:
        return pages.preview(gateway.served(namespace, name, Right.WRITE), request.query_params)

    @router.post("/resend")
    async def send(namespace: str, name: str, request: Request) -> Response:
        form = await form_of(request)
        served = await run_in_threadpool(gateway.served, namespace, name, Right.WRITE)
        return await run_in_threadpool(pages.send, served, form)

    return router
