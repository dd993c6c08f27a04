"""Runs the cases in turn: one round after another, so that whatever else the machine does hits all cases alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec

from bench.bed import Bed
from bench.cases.backlog import Backlog
from bench.cases.contenders import DESCRIBED, DESIGN, RELAYS, RELAYS_IN_C, Contender, relays_as_shipped
from bench.cases.described import LOAD, run_described
from bench.cases.flow import run_flow
from bench.cases.horizon import Agenda, plan, run_within_horizon
from bench.cases.lateness import lateness_in
from bench.cases.outcomes import run_with_outcomes
from bench.cases.pending import Growing
from bench.cases.recurring import run_recurring
from bench.cases.restart import run_restart
from bench.cases.throughput import Rate, measure_filling, run_fixed_delay, run_null, run_past_due
from bench.clock import now_ms, sleep_until
from bench.dialects import NATIVE, OTHERS, Speech
from bench.errors import PromiseBroken, Stalled, Unmeasurable
from bench.figures.names import (
    APPENDED,
    CAUGHT_UP,
    COST,
    FIRST,
    HELD,
    INTO,
    LAST,
    LONGEST,
    MEMORY,
    NULL,
    OFF,
    OFF_AGAIN,
    ON,
    OUT,
    P50,
    P99,
    P999,
    PLAINLY,
    RATE,
    RECURS,
    START,
    TRANSACTIONAL_NULL,
    TWICE,
    TWO_RELAYS,
    Table,
    at_rate,
    with_pending,
)
from bench.figures.results import Results, Unit, complete
from bench.figures.statistics import Lateness
from bench.processes.plan import Plan
from bench.selection import BACKENDS, GROWING, IN_C, PURE, THROUGHPUT, WAYS, Case, Group, Scale, Sizes, Way
from delaytopic_api.values import Dialect
from delaytopic_local.errors import EmbeddedServerError

WARM_UP_RECORDS = 150_000
WARM_UPS = 2
FIRST_ROUND = "round 1"
"""The title of the round in which alone is measured what no goal is about."""
ATTEMPTS = 4
OTHERS_SLOWER = 2.5
"""Records of another dialect than the native one take up to so many times as long to write and read, for the plan."""
SPEEDUPS = "delaytopic_relay._speedups"
"""Relays with it are measured, too, where it is compiled."""
BACKLOGS = {Group.REDIS: Case.REDIS, Group.BUCKETS: Case.BUCKETS}

Report = Callable[[str], None]


class Conductor:
    """One run of the benchmark."""

    def __init__(
        self, bed: Bed, rounds: Mapping[Group, int], sizes: Sizes, report: Report, peers: Sequence[Contender] = ()
    ) -> None:
        """`rounds` says which groups run, and how often. `report` gets a line a step.

        Without a scale among the sizes it is what the null relay copies in a second. `peers` are measured beside ours
        where the well-known design is.
        """
        self._peers = peers
        self._bed = bed
        self._rounds = rounds
        self._sizes = sizes
        self._report = report
        self._started = 0
        self._backlogs: list[tuple[str, Backlog]] = []
        self._fill_rate = 0.0
        self._agendas: dict[Dialect, Agenda] = {}
        """The agendas of dialects for which the first one was too tight."""
        has_speedups = find_spec(SPEEDUPS) is not None
        self._ways = WAYS if has_speedups else PURE
        self._relays_in_c = RELAYS_IN_C if has_speedups else ()
        self._as_shipped = IN_C if has_speedups else PURE
        self._shipped = relays_as_shipped(self._as_shipped)
        self._prompt = tuple(relay._replace(prompt=True) for relay in self._shipped)
        self._in_rounds = {
            Group.PAST_DUE: self._past_due,
            Group.LATENESS: self._lateness,
            Group.RESTART: self._restart,
            Group.OUTCOMES: self._outcomes,
        }
        self.scale = sizes.scale or Scale.of(0)
        self.results = Results()
        self.unmeasured: dict[tuple[Table, str], str] = {}
        """The reasons for which cases have no figures."""

    def run(self) -> Results:
        """Everything; backlogs are filled in the rounds and drained at the end, when much of them is due."""
        compared = self._rounds.keys() & set(THROUGHPUT)
        if compared:
            self._prepare()
        if Group.LATENESS in self._rounds:
            self._warm_up_flows()
        for number in range(1, max(self._rounds.values()) + 1):
            title = f"round {number}"
            groups = {group for group, rounds in self._rounds.items() if number <= rounds}
            if compared:
                self._round(title, groups)
            for group, measure in self._in_rounds.items():
                if group in groups:
                    measure(title)
        self._drain()
        for group, measure_once in ((Group.PENDING, self._pending), (Group.RECURRING, self._recurring)):
            if group in self._rounds:
                measure_once()
        complete(self.results)
        return self.results

    def _name(self, what: str, way: Way | None = None) -> str:
        """A name for topics, groups and logs that says what it is, and is new."""
        self._started += 1
        of_way = str(way).lower().replace(",", "").split() if way else []
        return "-".join(("bench", f"{self._started:02}", what, *of_way))

    def _try(self, table: Table, case: str, measure: Callable[[], None]) -> None:
        """Go on without a case for which this machine is too slow, or too busy; once is enough."""
        if (table, case) in self.unmeasured:
            return
        try:
            measure()
        except Unmeasurable as error:
            self.unmeasured[table, case] = str(error)
            self.results.forget(table, case)
            self._report(f"not measured: {error}")

    def _try_peer(self, table: Table, peer: Contender, measure: Callable[[], None]) -> None:
        """Go on without figures of a peer that does not get through: what it promises is not ours to judge."""

        def judged() -> None:
            try:
                measure()
            except (PromiseBroken, Stalled, EmbeddedServerError) as error:
                raise Unmeasurable(f"{peer.name}: {error}") from error

        self._try(table, peer.name, judged)

    # -- throughput

    def _prepare(self) -> None:
        """First runs of the null relay warm the broker up and say how many records it copies in a second."""
        warm_up = self._sizes.scale.copied if self._sizes.scale else WARM_UP_RECORDS
        first = [
            run_null(self._bed, self._name("null"), warm_up, transactional=False).per_second for _ in range(WARM_UPS)
        ]
        self.scale = self._sizes.scale or Scale.for_rate(max(first))
        self._report(
            f"{self.scale.copied:,} records for the null relay, {self.scale.within_horizon:,} and "
            f"{self.scale.backlog:,} for relays with delays"
        )
        self._fill_rate = measure_filling(self._bed, self._name("filling"), self.scale.within_horizon)

    def _round(self, title: str, groups: Collection[Group]) -> None:
        for group, case in BACKLOGS.items():
            for way in self._ways if group in groups else ():
                self._try(Table.BACKLOG, f"{case}, {way}", partial(self._fill, title, case, way))
        self._nulls(title)
        if Group.FIXED in groups:
            for way in self._ways:
                rate = run_fixed_delay(self._bed, self._name("fixed", way), self.scale.copied, way)
                self._note(title, Table.THROUGHPUT, f"{Case.FIXED}, {way}", rate)
        if Group.HORIZON in groups:
            for way in self._ways:
                self._note(title, Table.THROUGHPUT, f"{Case.HORIZON}, {way}", self._within_horizon(way))
        if Group.DIALECTS in groups:
            for speech in (NATIVE, *OTHERS.values()):
                rate = self._within_horizon(self._as_shipped[0], speech)
                self._note(title, Table.DIALECTS, speech.dialect, rate)

    def _within_horizon(self, way: Way, speech: Speech = NATIVE) -> Rate:
        """The due times are set before the source is filled: on a busy machine it can take more than one attempt."""
        records = self.scale.within_horizon
        slower = 1 if speech is NATIVE else OTHERS_SLOWER
        null_rate = max(self.results.runs(Table.THROUGHPUT, NULL, RATE))
        first = plan(records, self._fill_rate / slower, null_rate / slower)
        agenda = self._agendas.get(speech.dialect, first)
        for _ in range(ATTEMPTS):
            try:
                name = self._name("horizon", way)
                return run_within_horizon(self._bed, name, records, agenda, way, speech)
            except Unmeasurable as error:
                self._report(f"{error}; once more")
                agenda = self._agendas[speech.dialect] = agenda.doubled()
        raise Unmeasurable("delays inside the horizon: this machine is too busy, or too slow for so many --records")

    def _nulls(self, title: str) -> None:
        for case, transactional in ((NULL, False), (TRANSACTIONAL_NULL, True)):
            rate = run_null(self._bed, self._name("null"), self.scale.copied, transactional=transactional)
            self._note(title, Table.THROUGHPUT, case, rate)

    def _note(self, title: str, table: Table, case: str, rate: Rate, name: str = RATE) -> None:
        self.results.add(table, case, name, Unit.PER_SECOND, rate.per_second)
        what = case if name == RATE else f"{case}, {name.partition(',')[0]}"
        self._report(f"{title}: {what}: {rate.per_second:,.0f} records/s ({rate.records:,} in {rate.seconds:.2f} s)")

    # -- the backlog

    def _fill(self, title: str, case: Case, way: Way) -> None:
        backend = BACKENDS[case]
        backlog = Backlog(self._bed, self._name(str(backend).lower(), way), self.scale.backlog, way, backend)
        filled = backlog.fill()
        self._backlogs.append((f"{case}, {way}", backlog))
        self._note(title, Table.BACKLOG, f"{case}, {way}", filled.rate, INTO)
        self._remember_memory(f"{case}, {way}", filled.peak_memory_bytes)

    def _drain(self) -> None:
        for case, backlog in self._backlogs:
            wait_s = (backlog.ripe_at_ms - now_ms()) / 1_000
            if wait_s > 0:
                self._report(f"in {wait_s:.0f} s enough of the backlog is due")
                sleep_until(backlog.ripe_at_ms)
            self._try(Table.BACKLOG, case, partial(self._drain_one, case, backlog))

    def _drain_one(self, case: str, backlog: Backlog) -> None:
        drained = backlog.drain()
        self._note("at the end", Table.BACKLOG, case, drained.rate, OUT)
        self._remember_memory(case, drained.peak_memory_bytes)

    def _remember_memory(self, case: str, peak_bytes: int) -> None:
        self.results.add(Table.BACKLOG, case, MEMORY, Unit.MIB, peak_bytes / (1 << 20))

    def _pending(self) -> None:
        for backend, guarantee in GROWING:
            (way,) = (each for each in self._as_shipped if each.guarantee is guarantee)
            growing = Growing(self._bed, self._name(str(backend).lower(), way), way, backend, self._sizes.ripe)
            for pending in self._sizes.pending:
                case = with_pending(backend, guarantee, pending)
                self._try(Table.PENDING, case, partial(self._level, growing, pending, case))
            growing.close()
            self._bed.forget_backlogs()

    def _level(self, growing: Growing, pending: int, case: str) -> None:
        level = growing.level(pending)
        self._note("pending", Table.PENDING, case, level.into, INTO)
        self._note("pending", Table.PENDING, case, level.out, OUT)
        self.results.add(Table.PENDING, case, START, Unit.SECONDS, level.first_delivery_ms / 1_000)
        self.results.add(Table.PENDING, case, MEMORY, Unit.MIB, level.peak_memory_bytes / (1 << 20))
        self.results.add(Table.PENDING, case, HELD, Unit.BYTES, level.held_bytes)
        self._report(f"pending: {case}: first delivery {level.first_delivery_ms:,.0f} ms after the start")

    # -- what is past due, lateness, restarts

    def _past_due(self, title: str) -> None:
        for contender in (*RELAYS, *self._relays_in_c, DESIGN):
            self._past_due_of(title, contender)
        for peer in self._peers:
            self._try_peer(Table.PAST_DUE, peer, partial(self._past_due_of, title, peer))
        if title != FIRST_ROUND:
            return
        records = self._sizes.past_due
        for contender in self._shipped:
            name = self._name("by-two", contender.way)
            rate = run_past_due(self._bed, name, records, contender, processes=2)
            self._note(title, Table.PAST_DUE, f"{contender.name}{TWO_RELAYS}", rate)
        self._note(title, Table.PAST_DUE, DESCRIBED.name, run_described(self._bed, self._name("described")))

    def _past_due_of(self, title: str, contender: Contender) -> None:
        name = self._name("past-due", contender.way)
        self._note(
            title, Table.PAST_DUE, contender.name, run_past_due(self._bed, name, self._sizes.past_due, contender)
        )

    def _warm_up_flows(self) -> None:
        """Let a flow of each kind through: while the broker compiles, whoever comes first would be late."""
        for contender in (*self._prompt, DESIGN):
            run_flow(self._bed, self._name("warm-up", contender.way), contender, self._sizes.warm_up)

    def _lateness(self, title: str) -> None:
        for contender in (*self._prompt, DESIGN):
            for load in self._sizes.loads:
                self._load(title, contender, load)
        for peer in self._peers:
            for load in self._sizes.loads:
                self._try_peer(Table.LATENESS, peer, partial(self._load, title, peer, load))
        if title == FIRST_ROUND:
            self._load(title, DESCRIBED, LOAD)

    def _load(self, title: str, contender: Contender, load: Plan) -> None:
        run = lateness_in(load, run_flow(self._bed, self._name("lateness", contender.way), contender, load))
        for phase, lateness in run.arrived:
            self._note_lateness(Table.LATENESS, at_rate(contender.name, phase.per_second), lateness)
        for phase, lateness in run.appended if contender.transactional else ():
            self._note_lateness(Table.LATENESS, at_rate(f"{contender.name}{APPENDED}", phase.per_second), lateness)
        if run.burst_ms is not None:
            case = f"{contender.name}, {load.burst:,}"
            self.results.add(Table.BURST, case, LAST, Unit.SECONDS, run.burst_ms / 1_000)
        figures = ", ".join(
            f"p99 {lateness.p99_ms:,.0f} ms at {phase.per_second:,}/s" for phase, lateness in run.arrived
        )
        burst = f"; {load.burst:,} at once in {run.burst_ms:,.0f} ms" if run.burst_ms is not None else ""
        self._report(f"{title}: lateness, {contender.name}: {figures}{burst}")

    def _note_lateness(self, table: Table, case: str, lateness: Lateness) -> None:
        for name, value in (
            (P50, lateness.p50_ms),
            (P99, lateness.p99_ms),
            (P999, lateness.p999_ms),
            (LONGEST, lateness.max_ms),
        ):
            self.results.add(table, case, name, Unit.MS, value)

    def _restart(self, title: str) -> None:
        for contender in (*self._prompt, *([DESIGN] if title == FIRST_ROUND else [])):
            self._try(Table.RESTART, contender.name, partial(self._kill, title, contender))

    def _kill(self, title: str, contender: Contender) -> None:
        sizes, name = self._sizes, self._name("restart", contender.way)
        gap = run_restart(self._bed, name, contender, sizes.restart, sizes.kill_after_s)
        for figure, unit, value in (
            (FIRST, Unit.SECONDS, gap.first_ms / 1_000),
            (CAUGHT_UP, Unit.SECONDS, gap.caught_up_ms / 1_000),
            (TWICE, Unit.COUNT, gap.twice),
        ):
            self.results.add(Table.RESTART, contender.name, figure, unit, value)
        self._report(
            f"{title}: killed, {contender.name}: first delivery after {gap.first_ms:,.0f} ms, caught up after "
            f"{gap.caught_up_ms:,.0f} ms, {gap.twice} twice"
        )

    def _outcomes(self, title: str) -> None:
        """Each backend without outcomes, with them, and without them again, which says what the figures are worth."""
        way = self._as_shipped[-1]
        for backend in BACKENDS.values():
            for told in (OFF, ON, OFF_AGAIN):
                name, records = self._name(f"outcomes-{backend}".lower()), self._sizes.past_due
                rate = run_with_outcomes(self._bed, name, records, way, backend, told=told == ON)
                self._note(title, Table.OUTCOMES, f"{backend}, {told}", rate)

    def _recurring(self) -> None:
        """Records that recur, and others that are due at the same times."""
        for case, recurs in ((PLAINLY, False), (RECURS, True)):
            name = self._name("recurring" if recurs else "plain")
            run = run_recurring(self._bed, name, self._sizes.recurring, self._as_shipped[-1], recurs=recurs)
            self._note_lateness(Table.RECURRING, case, run.lateness)
            self.results.add(Table.RECURRING, case, COST, Unit.US, run.processor_us)
            self._report(f"{case}: p99 {run.lateness.p99_ms:,.0f} ms late, {run.processor_us:,.0f} us")
