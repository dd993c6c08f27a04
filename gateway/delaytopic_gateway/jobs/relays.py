"""The lists of one source partition, page by page, and how far relays have read the source."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from delaytopic_api.relay import PendingList, PendingRecord, PendingShard
from delaytopic_gateway.client.pending import LAST_OFFSET
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_gateway.jobs.job import BEFORE_ALL, Job, Part, Place
from delaytopic_gateway.service.served_topics import Ask, ServedTopic, ServedTopics

PAGE: Final = 5_000
"""Records in a page, at the most."""
PAGE_BYTES: Final = 2 << 20
"""The size of a page: one relay lists it, and few jobs run at once."""

REMEMBERED_S: Final = 1.0


class PartPage(NamedTuple):
    """Pending records of one partition, in the order of delivery."""

    records: Sequence[PendingRecord]
    end: Place | None
    """The place up to which it reaches; None: nothing comes behind it."""


class Relays:
    """Asks the relays of DelayTopics. All methods raise `ProgramError`s."""

    def __init__(self, topics: ServedTopics, ask: Ask) -> None:
        """`topics` knows where the relays are."""
        self._topics = topics
        self._ask = ask
        self._urls: dict[str, tuple[float, Sequence[str]]] = {}

    def ingested(self, served: ServedTopic) -> dict[int, int]:
        """Return the source offset of each partition below which relays have read everything.

        A partition of which no relay can tell is left out.
        """
        # Nothing is due before, so that relays read nothing for it.
        found = self._asked(served, {"dueBefore": 0, "limit": 0})
        return {partition: ingested for partition, (ingested, _) in found.items()}

    def page(self, served: ServedTopic, job: Job, part: Part, place: Place, need: int, *, contents: bool) -> PartPage:
        """Return what comes behind a place of a partition.

        Raises `RelayUnreachableError` where no relay has read the source up to the offset `need`, or can list further.
        """
        parameters = job.parameters(part.partition, place) | ({"contents": "true"} if contents else {})
        asked = {**parameters, "limit": PAGE, "maxBytes": PAGE_BYTES}
        ingested, page = self._asked(served, asked).get(part.partition, (-1, None))
        if page is None or ingested < need:
            raise RelayUnreachableError(f"no relay lists all of partition {part.partition} now")
        end = _end_of(page)
        if end is not None and end <= max(place, BEFORE_ALL):
            raise RelayUnreachableError(f"partition {part.partition}: {page.message}")
        return PartPage(page.records, end)

    def _asked(self, served: ServedTopic, parameters: Mapping[str, int | str]) -> dict[int, tuple[int, PendingList]]:
        """Return for each partition how far it is read, and the list of who has read it furthest.

        Who lost a partition without knowing it lists it, too, as it was.
        """
        urls = self._relay_urls(served)
        found: dict[int, tuple[int, PendingList]] = {}
        answers = self._ask(urls, parameters)
        for answer in answers:
            page = answer.document
            if page is None or (page.delay_topic, page.source) != (served.full_name, served.source):
                continue
            for shard in _whole(page):
                if shard.ingested is None:
                    raise RelayUnreachableError(f"relay {page.relay} is of an earlier version, and cannot take part")
                if shard.ingested > found.get(shard.partition, (-1, page))[0]:
                    found[shard.partition] = shard.ingested, page
        if not found:
            problems = "; ".join(f"{answer.url} {answer.problem}" for answer in answers if answer.problem)
            raise RelayUnreachableError(problems or f"no relay of {served.full_name} runs")
        return found

    def _relay_urls(self, served: ServedTopic) -> Sequence[str]:
        """Return where the relays are: asked several times a second, an API server need not be."""
        since_s, urls = self._urls.get(served.full_name, (0.0, ()))
        if not urls or time.monotonic() - since_s > REMEMBERED_S:
            urls = self._topics.relay_urls(served)
            self._urls[served.full_name] = time.monotonic(), urls
        return urls


def _whole(page: PendingList) -> Iterator[PendingShard]:
    """Yield the partitions that are listed without a reservation."""
    yield from (shard for shard in page.shards if shard.listed and shard.message is None)


def _end_of(page: PendingList) -> Place | None:
    if page.limited and page.records:
        return page.records[-1].due_ms, page.records[-1].offset
    return None if page.listed_until_ms is None else (page.listed_until_ms - 1, LAST_OFFSET)
