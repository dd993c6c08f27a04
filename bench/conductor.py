"""Runs the cases in turn: one round after another, so that whatever else the machine does hits all cases alike."""

from __future__ import annotations

from collections.abc import Callable, Collection

from bench.backlog import Backlog
from bench.bed import Bed
from bench.cases import BACKENDS, Case, Group, Scale
from bench.clock import now_ms, sleep_until
from bench.dialects import NATIVE, OTHERS, Speech
from bench.errors import Unmeasurable
from bench.figures.results import Measured
from bench.horizon import Agenda, plan, run_within_horizon
from bench.lateness import PLAN, run_lateness
from bench.throughput import Rate, measure_filling, run_fixed_delay, run_null
from delaytopic_api.values import Dialect, Guarantee

WARM_UP_RECORDS = 150_000
WARM_UPS = 2
ATTEMPTS = 4
GUARANTEES = (Guarantee.AT_LEAST_ONCE, Guarantee.EXACTLY_ONCE)
BACKLOGS = {Group.REDIS: Case.REDIS, Group.BUCKETS: Case.BUCKETS}

Report = Callable[[str], None]


class Conductor:
    """One run of the benchmark."""

    def __init__(self, bed: Bed, groups: Collection[Group], runs: int, records: int | None, report: Report) -> None:
        """`records` None: as many as the null relay copies in a second. `report` gets a line a step."""
        self._bed = bed
        self._groups = groups
        self._runs = runs
        self._records = records
        self._report = report
        self._started = 0
        self._backlogs: list[tuple[Case, Guarantee, Backlog]] = []
        self._fill_rate = 0.0
        self._agendas: dict[Dialect, Agenda] = {}
        """Of dialects for which the first one was too tight."""
        self.scale = Scale.of(0)
        self.measured = Measured()

    def run(self) -> Measured:
        """Everything; backlogs are filled in the rounds and drained at the end, when much of them is due."""
        if set(self._groups) - {Group.LATENESS}:
            self._prepare()
            for number in range(1, self._runs + 1):
                self._round(f"round {number}")
        if Group.LATENESS in self._groups:
            self._lateness()
        self._drain()
        return self.measured

    def _name(self, what: str, guarantee: Guarantee | None = None) -> str:
        """A name for topics, groups and logs that says what it is, and is new."""
        self._started += 1
        return "-".join(("bench", f"{self._started:02}", what, *([str(guarantee).lower()] if guarantee else [])))

    # -- throughput

    def _prepare(self) -> None:
        """First runs of the null relay warm the broker up and say how many records it copies in a second."""
        first = [
            run_null(self._bed, self._name("null"), WARM_UP_RECORDS, transactional=False).per_second
            for _ in range(WARM_UPS)
        ]
        self.scale = Scale.of(self._records) if self._records else Scale.for_rate(max(first))
        self._report(
            f"{self.scale.copied:,} records for the null relay, {self.scale.within_horizon:,} and "
            f"{self.scale.backlog:,} for relays with delays"
        )
        self._fill_rate = measure_filling(self._bed, self._name("filling"), self.scale.within_horizon)

    def _round(self, title: str) -> None:
        for group, case in BACKLOGS.items():
            for guarantee in GUARANTEES if group in self._groups else ():
                self._fill(title, case, guarantee)
        self._nulls(title)
        if Group.FIXED in self._groups:
            for guarantee in GUARANTEES:
                rate = run_fixed_delay(self._bed, self._name("fixed", guarantee), self.scale.copied, guarantee)
                self._note(title, Case.FIXED, guarantee, rate)
        if Group.HORIZON in self._groups:
            for guarantee in GUARANTEES:
                self._note(title, Case.HORIZON, guarantee, self._within_horizon(guarantee))

        if Group.DIALECTS in self._groups:
            self._dialects(title)

    def _dialects(self, title: str) -> None:
        """Each beside the native one in the same round."""
        for speech in (NATIVE, *OTHERS.values()):
            rate = self._within_horizon(Guarantee.AT_LEAST_ONCE, speech)
            self.measured.dialects.setdefault(speech.dialect, []).append(rate.per_second)
            self._say(title, f"dialect {speech.dialect}", rate)

    def _within_horizon(self, guarantee: Guarantee, speech: Speech = NATIVE) -> Rate:
        """The due times are set before the source is filled: on a busy machine it can take more than one attempt."""
        records = self.scale.within_horizon
        first = plan(records, self._fill_rate, max(self.measured.null))
        agenda = self._agendas.get(speech.dialect, first)
        for _ in range(ATTEMPTS):
            try:
                name = self._name("horizon", guarantee)
                return run_within_horizon(self._bed, name, records, agenda, guarantee, speech)
            except Unmeasurable as error:
                self._report(f"{error}; once more")
                agenda = self._agendas[speech.dialect] = agenda.doubled()
        raise Unmeasurable("delays inside the horizon: this machine is too busy, or too slow for so many --records")

    def _nulls(self, title: str) -> None:
        for transactional, rates in ((False, self.measured.null), (True, self.measured.null_transactional)):
            rate = run_null(self._bed, self._name("null"), self.scale.copied, transactional=transactional)
            rates.append(rate.per_second)
            self._say(title, f"null relay{', transactional' if transactional else ''}", rate)

    def _note(self, title: str, case: Case, guarantee: Guarantee, rate: Rate) -> None:
        self.measured.add_rate(case, guarantee, rate.per_second)
        self._say(title, f"{case}, {guarantee}", rate)

    def _say(self, title: str, what: str, rate: Rate) -> None:
        self._report(f"{title}: {what}: {rate.per_second:,.0f} records/s ({rate.records:,} in {rate.seconds:.2f} s)")

    # -- the backlog

    def _fill(self, title: str, case: Case, guarantee: Guarantee) -> None:
        backend = BACKENDS[case]
        name = self._name(str(backend).lower(), guarantee)
        backlog = Backlog(self._bed, name, self.scale.backlog, guarantee, backend)
        filled = backlog.fill()
        self._backlogs.append((case, guarantee, backlog))
        self.measured.filled.setdefault((case, guarantee), []).append(filled.rate.per_second)
        self._remember_memory(case, guarantee, filled.peak_memory_bytes)
        self._say(title, f"into {backend}, {guarantee}", filled.rate)

    def _drain(self) -> None:
        for case, guarantee, backlog in self._backlogs:
            wait_s = (backlog.ripe_at_ms - now_ms()) / 1_000
            if wait_s > 0:
                self._report(f"in {wait_s:.0f} s enough of the backlog is due")
                sleep_until(backlog.ripe_at_ms)
            drained = backlog.drain()
            self.measured.drained.setdefault((case, guarantee), []).append(drained.rate.per_second)
            self._remember_memory(case, guarantee, drained.peak_memory_bytes)
            self._say("at the end", f"out of {BACKENDS[case]}, {guarantee}", drained.rate)
        self.measured.combine_backlogs()

    def _remember_memory(self, case: Case, guarantee: Guarantee, peak_bytes: int) -> None:
        known = self.measured.peak_memory_bytes
        known[case, guarantee] = max(peak_bytes, known.get((case, guarantee), 0))

    # -- lateness

    def _lateness(self) -> None:
        for guarantee in GUARANTEES:
            found = run_lateness(self._bed, self._name("lateness", guarantee), guarantee)
            for phase, lateness in found.phases:
                self.measured.lateness[guarantee, phase.per_second] = lateness
            self.measured.burst_ms[guarantee] = found.burst_ms
            figures = ", ".join(
                f"p99 {lateness.p99_ms:.0f} ms at {phase.per_second:,}/s" for phase, lateness in found.phases
            )
            self._report(f"lateness, {guarantee}: {figures}; {PLAN.burst:,} at once in {found.burst_ms:,.0f} ms")
