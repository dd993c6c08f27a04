"""One relay process, put together: clients, core, pages, and the order in which they start and stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import structlog

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import load_relay_config
from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Compression, Guarantee
from delaytopic_relay.backlog.opening import open_backlog, open_second_clock
from delaytopic_relay.backlog.protocol import Backlog
from delaytopic_relay.backlog.signing import signer_of
from delaytopic_relay.clock import SystemClock
from delaytopic_relay.core.entries import SPEEDUPS, check_speedups
from delaytopic_relay.core.progress import usual_id
from delaytopic_relay.core.recovery import Acceptance, SourceTopic
from delaytopic_relay.core.rules import Declared
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.delivery.dead_letters import DeadLetters
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.outcomes import Outcomes
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals
from delaytopic_relay.dialects import Forms, dialect_by, forms_for, rules_of
from delaytopic_relay.engine.holding import Holding, OwnTopics
from delaytopic_relay.engine.loop import Loop, Parts
from delaytopic_relay.engine.pacing import Pace
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Origin, Takeover, is_of_group, transactional_id
from delaytopic_relay.errors import ConfigurationError, QueueImpossible, SourceReplaced, Unavailable
from delaytopic_relay.kafka import connection_settings
from delaytopic_relay.kafka.examining import KafkaExaminer, Trial
from delaytopic_relay.kafka.preflight import UNLIMITED_BYTES, Topics, check_topics
from delaytopic_relay.kafka.settings import Settings, codec_of, consumer_settings, producer_settings
from delaytopic_relay.kafka.source import KafkaSource
from delaytopic_relay.kafka.split_target import SplitTarget
from delaytopic_relay.kafka.target import KafkaTarget
from delaytopic_relay.kafka.topics import TopicReader
from delaytopic_relay.ports import Target
from delaytopic_relay.telemetry.gc_control import GarbageCollector
from delaytopic_relay.telemetry.telemetry import Telemetry

RECEIPT_BYTES = 400
"""The room for a receipt with the longest topic name in a record."""
WAIT_MS = 1_000

log = structlog.get_logger()

Stop = Callable[[], bool]
T = TypeVar("T")


def read_relay_config(path: Path) -> RelayConfig:
    """The configuration in a YAML file; raises `ConfigurationError` with a line for each thing to change."""
    try:
        return load_relay_config(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, ApiError) as error:
        raise ConfigurationError(f"{error}") from error


class Service:
    """Runs one relay from its configuration."""

    def __init__(self, config: RelayConfig, name: str | None = None, clock: SystemClock | None = None) -> None:
        """`name` is the relay's own in its group, and the same in each of its lives; `clock` is the machine's if none
        is given.
        """
        self._config = config
        self._name = name
        self._instance = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self._connection = connection_settings(config.kafka)
        self._signer = signer_of(config.backend)
        self._clock = clock or SystemClock()
        self._telemetry = Telemetry(config, self._instance, self._clock)
        for path, document in self._clock.pages.items():
            self._telemetry.add_page(path, document)

    def run(self, stop: Stop) -> None:
        """Wait for what has to be there, then work until `stop`; raises `ConfigurationError`.

        The pages come up first, so that a relay that waits can say what for. One that is told to stop while it
        waits says "stopped", too: who reads its log knows that nothing ended it.
        """
        check_speedups()
        with ExitStack() as stack:
            self._telemetry.start()
            stack.callback(self._telemetry.stop)
            self._serve(stop)
        log.info("stopped", relay=self._instance)

    def _serve(self, stop: Stop) -> None:
        topics = self._await(stop, self._topics)
        if topics is None:
            return
        # A fixed delay needs no backlog, as long as nothing waits that was read by other rules.
        queue = self._config.schedule.fixed_delay is not None
        while True:
            try:
                self._deliver(topics, stop, queue=queue)
            except QueueImpossible as error:
                log.info("a fixed delay with a backlog, until what was read by former rules is done", reason=str(error))
                queue = False
            except SourceReplaced as error:
                log.warning("beginning anew", reason=str(error))
            else:
                return

    def _deliver(self, topics: TopicReader, stop: Stop, *, queue: bool) -> None:
        source = self._await(stop, partial(topics.source_topic, self._config.source.topic))
        if source is None:
            return
        backlog = self._await(stop, partial(self._backlog, topics, source, queue=queue))
        if backlog is None:
            return
        with closing(backlog), closing(self._examiner()) as examiner:
            loop = self._await(stop, partial(self._loop, topics, source, backlog, examiner))
            if loop is not None:
                self._work(loop, stop)

    def _await(self, stop: Stop, attempt: Callable[[], T]) -> T | None:
        """Repeat an attempt until it succeeds; None when asked to stop."""
        while not stop():
            try:
                return attempt()
            except Unavailable as error:
                self._telemetry.waiting_for(str(error))
                self._clock.sleep(WAIT_MS)
        return None

    def _work(self, loop: Loop, stop: Stop) -> None:
        guarantee = str(self._config.guarantee)
        log.info(
            "started",
            relay=self._instance,
            group=self._config.group_id,
            guarantee=guarantee,
            speedups=SPEEDUPS,
        )
        collector = GarbageCollector(self._clock)
        loop.start()
        try:
            while not stop():
                loop.step()
                self._clock.turn(loop)
                self._telemetry.turn(loop)
                collector.turn(loop.size)
        except (QueueImpossible, SourceReplaced):
            loop.finish()
            raise
        self._telemetry.draining()
        loop.finish()

    # -- parts

    @property
    def _own_topics(self) -> OwnTopics:
        config = self._config
        return OwnTopics(
            config.source.topic,
            config.target.topic,
            config.dead_letter.topic,
            config.history.topic if config.history is not None else None,
            config.outcomes.topic if config.outcomes is not None else None,
        )

    @property
    def _further(self) -> FurtherTargets:
        return FurtherTargets(self._config.target.allowed_topics, self._config.backend.id)

    @property
    def _accepted(self) -> Acceptance:
        source = self._config.source
        until = source.accept_repeats
        return Acceptance(usual_id(source.accepted_topic_id or ""), until.ms if until is not None else 0)

    def _topics(self) -> TopicReader:
        own = self._own_topics
        reader = TopicReader(self._connection, sorted(own.names))
        found = reader.read_anew(sorted(own.names))
        finding = check_topics(self._config, Topics(*(found[name] if name is not None else None for name in own)))
        if finding is None:
            return reader
        raise Unavailable(finding.text) if finding.waits else ConfigurationError(finding.text)

    def _backlog(self, topics: TopicReader, source: SourceTopic, *, queue: bool) -> Backlog:
        config, clock, events = self._config, self._clock, self._telemetry
        mark = source.identity.topic
        return open_backlog(config, topics, self._instance, clock, events, self._signer, topic_mark=mark, queue=queue)

    def _target(self, topics: TopicReader, backlog: Backlog) -> Target:
        """Transactions carry deliveries with ExactlyOnce, and what is stored in Kafka with either guarantee."""
        source = topics.read(self._config.source.topic)
        codec = codec_of(self._config.target.compression, source.settings if source is not None else {})
        settings = partial(self._producer_settings, topics, backlog.largest_batch_bytes, codec)
        topic, exactly_once = self._config.source.topic, self._config.guarantee is Guarantee.EXACTLY_ONCE
        owner, notes = transactional_id(self._config.group_id, self._instance), self._config.outcomes is not None
        if exactly_once or not backlog.transactional:
            return KafkaTarget(settings, topic, owner if exactly_once else None, notes_places=notes)
        plain = KafkaTarget(settings, topic, None, notes_places=notes)
        return SplitTarget(plain, KafkaTarget(settings, topic, owner))

    def _examiner(self) -> KafkaExaminer:
        """Half of the memory that schedules may take: records are copied from what was unpacked, beside these."""
        config = self._config
        limit_bytes = config.limits.memory.value // 2
        return KafkaExaminer(Trial(self._connection, config.group_id, self._instance, config.source.topic, limit_bytes))

    def _loop(self, topics: TopicReader, of: SourceTopic, backlog: Backlog, examiner: KafkaExaminer) -> Loop:
        config, clock, telemetry = self._config, self._clock, self._telemetry
        pace = Pace(config.precision.ms, config.guarantee is Guarantee.EXACTLY_ONCE)
        ask_ends = partial(topics.ask_ends, config.source.topic)
        open_group = partial(topics.open_group, config.group_id, config.source.topic)
        ask_topic = partial(topics.ask_topic, config.source.topic)
        source = KafkaSource(self._consumer_settings(), self._connection, of, ask_ends, open_group, ask_topic)
        target = self._target(topics, backlog)
        origin = Origin(of, config.group_id, self._accepted)
        facts = topics.read(config.source.topic)
        partitions = facts.partitions if facts is not None else 0
        backlog.begin(partitions)
        telemetry.pending.begin(partitions, backlog)
        may_be_fenced = partial(is_of_group, group_id=config.group_id)
        declared = Declared(rules_of(config), config.schedule.declared_ms or 0)
        dialect_of = partial(dialect_by, target=config.target.topic, misspelt=telemetry.misspelt)
        reading = Reading(declared, clock.checked(dialect_of))
        reading.move(clock.asked_ms)
        takeover = Takeover(source, target, backlog, telemetry, may_be_fenced, reading, origin, clock)
        takeover.examiner = examiner
        refusals = Refusals()
        refusals.compress = target.compress if config.target.compression is not Compression.NONE else None
        forms = forms_for(config)
        dead_letters = DeadLetters(config.source.topic, config.dead_letter.topic, topics.limit, refusals, forms.letter)
        dead_letters.source_until = partial(topics.keeps_until, config.source.topic)
        return Loop(
            Parts(
                source=source,
                target=target,
                reading=reading,
                writer=self._writer(topics, target, refusals, forms),
                dead_letters=dead_letters,
                manager=backlog.manager,
                takeover=takeover,
                holding=Holding(self._own_topics, self._further, topics.look_at, clock),
                pace=pace,
                memory_bytes=config.limits.memory.value,
                clock=clock,
                events=telemetry,
                suspension=Suspension.of(config.suspend),
                id_bytes=config.limits.id_memory.value,
                learn=topics.learn if config.target.allowed_topics else None,
                second_clock=open_second_clock(config, self._connection, self._instance, clock),
                outcomes=self._outcomes(),
            )
        )

    def _outcomes(self) -> Outcomes | None:
        config = self._config
        if config.outcomes is None:
            return None
        names = config.source.topic, config.target.topic, config.dead_letter.topic
        return Outcomes(config.outcomes.topic, config.outcomes.only, *names)

    def _consumer_settings(self) -> Settings:
        session_timeout_ms = self._config.limits.session_timeout.ms
        group_id = self._config.group_id
        return consumer_settings(self._connection, group_id, session_timeout_ms, self._instance, self._name)

    def _producer_settings(
        self, topics: TopicReader, stored_bytes: int | None, codec: str, owner: str | None
    ) -> Settings:
        outcomes = self._config.outcomes
        names = [self._config.target.topic, self._config.dead_letter.topic, *([outcomes.topic] if outcomes else [])]
        limits = [limit for limit in (*map(topics.limit, names), stored_bytes) if limit is not None]
        return producer_settings(self._connection, self._instance, owner, min(limits, default=UNLIMITED_BYTES), codec)

    def _writer(self, topics: TopicReader, target: Target, refusals: Refusals, forms: Forms) -> RecordWriter:
        config = self._config
        facts = topics.read(config.target.topic)
        if facts is None:
            raise Unavailable(f"target.topic: the topic {config.target.topic} does not exist any more")
        writer = RecordWriter(
            config.source.topic,
            config.target.topic,
            config.target.partitioning,
            facts.partitions,
            topics.limit,
            self._further,
            refusals,
            forms,
        )
        writer.count = topics.partitions
        writer.may_write_source = partial(topics.may_write, config.source.topic)
        writer.packs = target.packs
        writer.certain_bytes = max(0, facts.largest_batch_bytes // 2 - RECEIPT_BYTES)
        return writer
