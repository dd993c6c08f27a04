"""Edge: the demo from start to verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from delaytopic_api import Settings
from delaytopic_api.documents import BackendSettings
from delaytopic_api.values import BackendType
from delaytopic_gateway.client.kafka_clients import producer
from delaytopic_gateway.client.lateness import histogram, milliseconds_text, summarize
from delaytopic_gateway.client.sending import Sending
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import create_topics
from delaytopic_local.demo.arrivals import ArrivalClock
from delaytopic_local.demo.scenario import MALFORMED, Scenario
from delaytopic_local.errors import RelayError
from delaytopic_local.servers.running import Servers, data_directory, running_servers
from delaytopic_local.session.documents import read_settings, topic_plans
from delaytopic_local.session.relays import RelayProcess, read_status
from delaytopic_local.session.session import needs_a_redis, relay_groups
from delaytopic_local.verifier.reading import read_dead_letter, read_delivered, read_source, rules_of
from delaytopic_local.verifier.verdict import Lateness, Outage, Verdict, verify

RELAY_START_SECONDS = 30.0
LATEST_ARRIVAL_SECONDS = 60.0
SETTLE_MS = 2_000
Progress = Callable[[str], None]
_EXAMPLES = 3
_NAME_WIDTH = 36


def run_demo(file: Path, backend: BackendType | None, progress: Progress, scenario: Scenario | None = None) -> Verdict:
    """Run it, print the summary, and return the verifier's verdict; raises ProgramError and ApiError."""
    settings = read_settings(file)[0]
    if backend is not None:
        settings = replace(settings, backend=BackendSettings(backend, settings.backend.id, settings.backend.redis))
    with (
        data_directory(None) as directory,
        running_servers(directory, needs_redis=needs_a_redis(settings), progress=progress) as servers,
    ):
        return _Demo(settings, servers, scenario or Scenario(), progress).run()


class _Demo:
    """One DelayTopic, one relay, one scenario."""

    def __init__(self, settings: Settings, servers: Servers, scenario: Scenario, progress: Progress) -> None:
        self._settings = settings
        self._scenario = scenario
        self._show_progress = progress
        self._client = {"bootstrap.servers": servers.bootstrap_servers}
        create_topics(servers.bootstrap_servers, topic_plans([settings], on_own_cluster=False))
        self._relay: RelayProcess = relay_groups([settings], servers)[0].relays[0]
        self._arrivals = ArrivalClock(self._client, settings.target.topic)
        self._counted = self._shown_ms = 0

    def run(self) -> Verdict:
        """Run the whole course."""
        self._start_relay()
        try:
            with self._arrivals:
                start_ms = self._send()
                self._watch_until(start_ms + self._scenario.kill_after_ms)
                outage = self._crash()
                self._watch_until(start_ms + self._scenario.last_due_after_ms)
                self._watch_the_rest()
        finally:
            self._relay.stop()
        verdict = self._audit(outage)
        for line in ("", *summary_lines(verdict, self._arrivals.lateness_since(0), outage)):
            self._show_progress(line)
        return verdict

    def _start_relay(self) -> None:
        self._show_progress(f"starting a relay ({self._settings.backend.type}, {self._settings.guarantee}) ...")
        self._relay.start()
        give_up_s = time.monotonic() + RELAY_START_SECONDS
        while not self._has_caught_up():
            if not self._relay.is_running() or time.monotonic() > give_up_s:
                raise RelayError(f"the relay does not work: {self._relay.last_words()}")
            time.sleep(0.05)

    def _has_caught_up(self) -> bool:
        """Tell whether the relay owns every partition and has read all there is."""
        port = self._relay.port
        status = read_status(port) if port is not None else None
        if status is None or len(status.shards) < self._partitions:
            return False
        return all(shard.state == "Delivering" and shard.ingest_lag == 0 for shard in status.shards)

    @property
    def _partitions(self) -> int:
        return topic_plans([self._settings], on_own_cluster=False)[0].partitions

    def _send(self) -> int:
        """Send everything; returns when sending started."""
        scenario, topic = self._scenario, self._settings.source.topic
        start_ms = _now_ms()
        records = chain(scenario.schedules(start_ms), scenario.corrections(start_ms), scenario.malformed())
        sent = Sending(producer(self._client, topic), topic).send_all(records)
        self._show_progress(
            f"sent {sent.records:,} records to {topic} in {(_now_ms() - start_ms) / 1000:.1f} s: {scenario.records:,} "
            f"due over {scenario.spread_ms / 1000:.0f} s, {scenario.cancelled} cancels, {scenario.replaced} "
            f"replacements, {len(MALFORMED)} malformed"
        )
        return start_ms

    def _crash(self) -> Outage:
        """Kill the relay, start it again, and wait until it works; returns the time without a working relay."""
        killed_ms = _now_ms()
        self._relay.kill()
        self._show_progress(f"killed the relay (SIGKILL) after {self._arrivals.count:,} arrivals; starting it again")
        self._relay.start()
        arrived_before = self._arrivals.count
        give_up_ms = _now_ms() + round(LATEST_ARRIVAL_SECONDS * 1000)
        while not (self._has_caught_up() and self._arrivals.count > arrived_before) and _now_ms() < give_up_ms:
            self._watch_until(_now_ms() + 200)
        self._show_progress(f"the relay delivers again, {(_now_ms() - killed_ms) / 1000:.1f} s after it was killed")
        return Outage(killed_ms, _now_ms())

    def _watch_until(self, end_ms: int) -> None:
        """Say once a second what arrives."""
        while (now_ms := _now_ms()) < end_ms:
            if now_ms // 1000 > self._shown_ms // 1000:
                self._progress()
            time.sleep(min(0.05, (end_ms - now_ms) / 1000))

    def _progress(self) -> None:
        now_ms, count = _now_ms(), self._arrivals.count
        late = summarize([item.late_ms for item in self._arrivals.lateness_since(self._counted)])
        self._show_progress(
            f"{clock_text(now_ms, now_ms=now_ms)[:8]}  arrived {count:>7,}  in this second {late.count:>6,}  "
            f"late p50 {milliseconds_text(late.p50_ms):>8}  p99 {milliseconds_text(late.p99_ms):>8}"
        )
        self._counted, self._shown_ms = count, now_ms

    def _watch_the_rest(self) -> None:
        """Watch until nothing more arrives for a while, or all expected records are there."""
        expected = self._scenario.records - self._scenario.cancelled
        give_up_ms = _now_ms() + round(LATEST_ARRIVAL_SECONDS * 1000)
        while self._arrivals.count < expected and _now_ms() < give_up_ms:
            self._watch_until(_now_ms() + 100)
        self._progress()

    def _audit(self, outage: Outage) -> Verdict:
        self._show_progress("reading source, target and dead-letter topic from outside ...")
        settings, rules = self._settings, rules_of(self._settings)
        return verify(
            [read_source(record, rules) for record in read_topic(self._client, settings.source.topic)],
            [read_delivered(record) for record in read_topic(self._client, settings.target.topic)],
            [read_dead_letter(record) for record in read_topic(self._client, settings.dead_letter.topic)],
            until_ms=_now_ms(),
            outages=[outage],
            settle_ms=SETTLE_MS,
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def summary_lines(verdict: Verdict, arrivals: Sequence[Lateness], outage: Outage) -> Iterator[str]:
    """Yield the whole summary; `arrivals` are the latenesses that a consumer saw, which waits for each commit."""
    faults = verdict.faults
    yield f"{'delivered':<14}{verdict.delivered:>8,}"
    for name in ("lost", "twice", "early"):
        yield f"{name:<14}{len(faults.get(name, ())):>8,}"
    yield f"{'cancelled':<14}{verdict.cancelled:>8,}"
    yield f"{'replaced':<14}{verdict.replaced:>8,}"
    yield f"{'dead-lettered':<14}{verdict.dead_lettered:>8,}"
    yield ""
    yield from _lateness_lines(verdict.lateness, arrivals, outage)
    for name, coordinates in faults.items():
        examples = ", ".join(map(str, coordinates[:_EXAMPLES]))
        yield f"FAULT {name.replace('_', ' ')}: {len(coordinates)}, such as {examples}"
    yield "every record arrived once, and none early" if verdict.is_clean else "THE AUDIT FOUND FAULTS"


def undisturbed(lateness: Sequence[Lateness], outage: Outage) -> list[int]:
    """Return the lateness of all records but those that were due and not yet sent at any time of the outage."""
    return [
        item.late_ms for item in lateness if item.due_ms > outage.end_ms or item.due_ms + item.late_ms < outage.start_ms
    ]


def _lateness_lines(sent: Sequence[Lateness], arrivals: Sequence[Lateness], outage: Outage) -> Iterator[str]:
    everything = [item.late_ms for item in sent]
    outage_text = f"{(outage.end_ms - outage.start_ms) / 1000:.1f} s outage"
    yield f"{'lateness':<{_NAME_WIDTH}}{'records':>8}  {'p50':>9}  {'p99':>9}  {'max':>9}"
    yield _row("sent by the relay", everything)
    yield _row(f"  apart from the {outage_text}", undisturbed(sent, outage))
    yield _row("read by a read_committed consumer", [item.late_ms for item in arrivals])
    yield _row(f"  apart from the {outage_text}", undisturbed(arrivals, outage))
    yield ""
    yield "sent by the relay:"
    yield from histogram(everything)
    yield ""
    yield f"sent by the relay, apart from the {outage_text}:"
    yield from histogram(undisturbed(sent, outage))
    yield ""


def _row(name: str, lateness_ms: Sequence[int]) -> str:
    figures = summarize(lateness_ms)
    p50, p99, most = map(milliseconds_text, (figures.p50_ms, figures.p99_ms, figures.max_ms))
    return f"{name:<{_NAME_WIDTH}}{figures.count:>8,}  {p50:>9}  {p99:>9}  {most:>9}"
