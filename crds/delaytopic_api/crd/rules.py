"""The rules across fields in CEL, beside the models whose validators they repeat for the API server.

A test feeds the same objects to both. Rules with `oldSelf` have no counterpart in the models, which see one object:
they keep what cannot change while records are pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final

from pydantic.alias_generators import to_camel

from delaytopic_api.documents.connection import Authentication, OAuth, RedisConnection
from delaytopic_api.documents.delay_class import ClassBackendSpec, DelayClassSpec, ExecutorsTemplate
from delaytopic_api.documents.delay_topic import (
    BackendSpec,
    DelayTopic,
    DelayTopicSpec,
    ScheduleSpec,
    SloExclusion,
    SloSpec,
)
from delaytopic_api.documents.dialects import MEMBERS, DialectChoice
from delaytopic_api.documents.model import Model
from delaytopic_api.documents.recurring_record import RecurringRecordSpec
from delaytopic_api.documents.relays import AutoscalingSpec
from delaytopic_api.documents.topics import TopicSpec
from delaytopic_api.values.choices import CAPABILITIES
from delaytopic_api.values.cluster_rules import Rule
from delaytopic_api.values.topic_config import (
    BOOLEANS,
    FRACTION,
    MOST_DIGITS,
    SHARE,
    TRUTH,
    WHOLE,
    WHOLE_NUMBERS,
)


def _credentials(field: str, types: str) -> Rule:
    """A field that some authentication types need, and the others have no use for."""
    return Rule(
        f"has(self.{field}) == (self.type in {types})",
        f"(has(self.{field}) ? 'is not for type ' : 'is required for type ') + self.type",
        field,
        is_expression=True,
    )


def any_of(place: str, fields: Iterable[str]) -> str:
    """The condition that any of the fields is there."""
    return " || ".join(f"has({place}.{field})" for field in fields)


def _of_config(names: Iterable[str], pattern: str, message: str) -> Rule:
    """Settings of a topic whose values have one form."""
    return Rule(
        f"!has(self.config) || {sorted(names)}.all(name, !(name in self.config)"
        f" || self.config[name].matches('^({pattern})$'))",
        message,
        "config",
    )


def _in_range() -> Iterator[Rule]:
    """Rules that numbers of a topic's settings are within their ranges; texts of another form are not judged."""
    ranges = sorted({*WHOLE_NUMBERS.values()})
    largest = str(max(most for _, most in ranges))
    text = "self.config[name]"
    digits = f"{text}.find('[1-9][0-9]*')"
    # What has more bits than an int is told by its digits: its conversion would be an error, and say nothing of ranges.
    fits = f"(size({digits}) < {len(largest)} || size({digits}) == {len(largest)} && {digits} <= '{largest}')"
    for least, most in ranges:
        names = sorted(name for name, its_range in WHOLE_NUMBERS.items() if its_range == (least, most))
        yield Rule(
            f"!has(self.config) || {names}.all(name, !(name in self.config) || !{text}.matches('^({WHOLE})$')"
            f" || size({text}) <= {MOST_DIGITS} && {fits} && int({text}) >= {least} && int({text}) <= {most})",
            f"{', '.join(names)} must be between {least} and {most}",
            "config",
        )


HISTORY: Final = "schedule.scheduler.history"
_WITH_HISTORY: Final = "(has(self.schedule) && has(self.schedule.scheduler))"
_HISTORY_WRITTEN: Final = "(has(self.schedule) && has(self.schedule.scheduler) && has(self.schedule.scheduler.history))"
_DEAD_LETTER: Final = "(has(self.deadLetter) ? self.deadLetter.topic : self.source.topic + '.dlq')"
_HISTORY: Final = f"({_HISTORY_WRITTEN} ? self.{HISTORY}.topic : self.source.topic + '.history')"
_OUTCOMES_APART: Final = (
    f"!(self.outcomes.topic in [self.source.topic, self.target.topic, {_DEAD_LETTER}])"
    f" && (!{_WITH_HISTORY} || self.outcomes.topic != {_HISTORY})"
)
_FIXED: Final = "cannot be changed: drain this DelayTopic and make another"
_GROWS: Final = "can only grow: Kafka removes no partitions"


def _of_before(expression: str) -> str:
    return expression.replace("self.", "oldSelf.")


def _told_apart() -> Iterator[Rule]:
    """Rules that Kafka takes no two topics of a DelayTopic for one."""
    topics = {
        "source": "self.source.topic",
        "target": "self.target.topic",
        "deadLetter": _DEAD_LETTER,
        HISTORY: _HISTORY,
    }
    for (one, name), (other, of_other) in combinations(topics.items(), 2):
        differ = f"{name} == {of_other} || {name}.replace('.', '_') != {of_other}.replace('.', '_')"
        yield Rule(
            f"!{_WITH_HISTORY} || {differ}" if other == HISTORY else differ,
            f"differs from {one}.topic in dots and underscores only: Kafka takes one of the two",
            f"{other}.topic",
        )
    for one, name in topics.items():
        differ = f"self.outcomes.topic == {name} || {_unified('self.outcomes.topic')} != {_unified(name)}"
        unless = f"!has(self.outcomes) || {'!' + _WITH_HISTORY + ' || ' if one == HISTORY else ''}"
        yield Rule(
            unless + differ,
            f"differs from {one}.topic in dots and underscores only: Kafka takes one of the two",
            "outcomes.topic",
        )


def _unified(name: str) -> str:
    return f"{name}.replace('.', '_')"


_WITH_PASSWORD = "['ScramSha512', 'ScramSha256', 'Plain']"
_MEMBERS: Final = {dialect: to_camel(name) for dialect, name in MEMBERS.items()}
_TOMBSTONES = any_of(
    "self.schedule", (field for dialect, field in _MEMBERS.items() if CAPABILITIES[dialect].tombstones)
)
_NO_USE = "has no use beside fixedDelay: every record waits for the same time"

RULES: Final[Mapping[type[Model], tuple[Rule, ...]]] = {
    DelayTopicSpec: (
        Rule(
            "!has(self.source.config) || !('cleanup.policy' in self.source.config)"
            " || !self.source.config['cleanup.policy'].contains('compact')"
            f" || (has(self.schedule) && ({_TOMBSTONES}))",
            "cleanup.policy must not be compact: compaction removes records that are still to be delivered",
            "source.config",
        ),
        Rule(
            f"!{_HISTORY_WRITTEN} || !(self.{HISTORY}.topic in [self.source.topic, self.target.topic, {_DEAD_LETTER}])",
            "must differ from source.topic, target.topic and deadLetter.topic",
            f"{HISTORY}.topic",
        ),
        Rule(
            f"!{_WITH_HISTORY} || {_HISTORY_WRITTEN} || size(self.source.topic) <= 241"
            " && self.target.topic != self.source.topic + '.history'"
            " && (!has(self.deadLetter) || self.deadLetter.topic != self.source.topic + '.history')",
            "is required: the source's name with .history is too long, or another topic of this DelayTopic",
            f"{HISTORY}.topic",
        ),
        Rule("self.source.topic != self.target.topic", "must differ from source.topic", "target.topic"),
        *_told_apart(),
        Rule(
            "has(self.deadLetter) || self.source.topic + '.dlq' != self.target.topic",
            "must differ from source.topic and target.topic; without deadLetter it is source.topic and .dlq",
            "deadLetter.topic",
        ),
        Rule(
            "!has(self.deadLetter) || !(self.deadLetter.topic in [self.source.topic, self.target.topic])",
            "must differ from source.topic and target.topic",
            "deadLetter.topic",
        ),
        Rule(
            "has(self.deadLetter) || size(self.source.topic) <= 245",
            "is required: the source's name is too long to add .dlq",
            "deadLetter.topic",
        ),
        Rule(
            "!has(self.delayClassName) || !has(self.connection)",
            "set delayClassName or connection, not both",
            "connection",
        ),
        Rule(
            "!has(self.delayClassName) || !has(self.backend) || !has(self.backend.redis)",
            "is not for use with delayClassName: the class brings its own Redis",
            "backend.redis",
        ),
        Rule(
            "!has(self.delayClassName) || !has(self.backend) || !has(self.backend.signingKey)",
            "is not for use with delayClassName: the class brings its own keys",
            "backend.signingKey",
        ),
        # Of what may be absent its parent has the rule, or another one could come after it was gone.
        Rule(
            f"!has(self.outcomes) || {_OUTCOMES_APART}",
            "must differ from source.topic, target.topic, deadLetter.topic and the history",
            "outcomes.topic",
        ),
        Rule(
            "!has(self.outcomes) || !has(self.outcomes.config) || !('cleanup.policy' in self.outcomes.config)"
            " || !self.outcomes.config['cleanup.policy'].contains('compact')",
            "cleanup.policy must not be compact: compaction removes outcomes that nobody has read yet",
            "outcomes.config",
        ),
        Rule(
            "!has(self.outcomes) || !has(self.schedule) || !has(self.schedule.redelivery)",
            "is not for dialect Redelivery, which writes schedules into the source again",
            "outcomes",
        ),
        Rule(
            "!has(self.outcomes) || !has(oldSelf.outcomes) || self.outcomes.topic == oldSelf.outcomes.topic",
            _FIXED,
            "outcomes.topic",
        ),
        Rule(
            "!has(self.outcomes) || !has(oldSelf.outcomes) || !has(oldSelf.outcomes.partitions)"
            " || (has(self.outcomes.partitions) && self.outcomes.partitions >= oldSelf.outcomes.partitions)",
            _GROWS,
            "outcomes.partitions",
        ),
        Rule(f"{_DEAD_LETTER} == {_of_before(_DEAD_LETTER)}", _FIXED, "deadLetter.topic"),
        Rule(
            "!has(oldSelf.deadLetter) || !has(oldSelf.deadLetter.partitions) || (has(self.deadLetter)"
            " && has(self.deadLetter.partitions) && self.deadLetter.partitions >= oldSelf.deadLetter.partitions)",
            _GROWS,
            "deadLetter.partitions",
        ),
        Rule(
            f"!{_WITH_HISTORY} || !{_of_before(_WITH_HISTORY)} || {_HISTORY} == {_of_before(_HISTORY)}",
            _FIXED,
            f"{HISTORY}.topic",
        ),
        Rule(
            f"!{_WITH_HISTORY} || !{_of_before(_HISTORY_WRITTEN)} || !has(oldSelf.{HISTORY}.partitions)"
            f" || ({_HISTORY_WRITTEN} && has(self.{HISTORY}.partitions)"
            f" && self.{HISTORY}.partitions >= oldSelf.{HISTORY}.partitions)",
            _GROWS,
            f"{HISTORY}.partitions",
        ),
    ),
    TopicSpec: (
        Rule(
            "!has(self.retention) || !has(self.config) || !('retention.ms' in self.config)",
            "retention.ms is set twice; keep either this or retention",
            "config",
        ),
        _of_config(
            WHOLE_NUMBERS, WHOLE, "what is a whole number for Kafka must be written in digits, such as '1048588'"
        ),
        *_in_range(),
        _of_config(BOOLEANS, TRUTH, "what is a boolean for Kafka must be true or false"),
        _of_config([SHARE], FRACTION, f"{SHARE} must be a number between 0 and 1"),
        Rule(
            f"!has(self.config) || !('{SHARE}' in self.config) || !self.config['{SHARE}'].matches('^({FRACTION})$')"
            f" || double(self.config['{SHARE}']) <= 1.0",
            f"{SHARE} must be a number between 0 and 1",
            "config",
        ),
        Rule("self.topic == oldSelf.topic", _FIXED, "topic"),
        Rule(
            "!has(oldSelf.partitions) || (has(self.partitions) && self.partitions >= oldSelf.partitions)",
            _GROWS,
            "partitions",
        ),
    ),
    DialectChoice: tuple(
        Rule(
            f"!has(self.{field}) || !({any_of('self', fields[:place])})",
            "is one dialect too many; keep one of them",
            field,
        )
        for fields in ([*_MEMBERS.values()],)
        for place, field in enumerate(fields)
        if place
    ),
    ScheduleSpec: (
        *(
            Rule(
                f"!has(self.{field}) || !({any_of('self', _MEMBERS.values())})",
                "is only for native headers, not for another dialect",
                field,
            )
            for field in ("defaultDelay", "fixedDelay", "ids")
        ),
        Rule("!has(self.fixedDelay) || !has(self.defaultDelay)", _NO_USE, "defaultDelay"),
        Rule("!has(self.fixedDelay) || !has(self.maxDelay)", _NO_USE, "maxDelay"),
        Rule(
            "!has(self.fixedDelay) || !has(self.ids) || self.ids == 'Disabled'",
            "must be Disabled beside fixedDelay: a fixed delay keeps no index to find a schedule in",
            "ids",
        ),
        Rule(
            "!has(self.defaultDelay) || !has(self.maxDelay) || duration(self.defaultDelay) <= duration(self.maxDelay)",
            "'is ' + self.defaultDelay + ', longer than maxDelay (' + self.maxDelay + ')'",
            "defaultDelay",
            is_expression=True,
        ),
    ),
    BackendSpec: (Rule("!has(self.redis) || self.type == 'RedisZset'", "is only for type RedisZset", "redis"),),
    SloExclusion: (Rule("self.from < self.until", "must be after from", "until"),),
    SloSpec: (
        Rule(
            "!has(self.timeZone) || has(self.calendar)",
            "is only for use with calendar: a rolling window has no midnight",
            "timeZone",
        ),
        Rule(
            "!has(self.thresholds) || self.thresholds.all(a, self.thresholds.exists_one(b,"
            " duration(a.lateness) == duration(b.lateness))"
            " && (!has(self.lateness) || duration(a.lateness) != duration(self.lateness)))",
            "must each have a lateness of its own, other than slo.lateness",
            "thresholds",
        ),
    ),
    AutoscalingSpec: (
        Rule(
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "must not be more than maxReplicas",
            "minReplicas",
        ),
        Rule(
            "(has(self.mode) && self.mode != 'Operator') || !has(self.minReplicas) || self.minReplicas > 0"
            " || (has(self.scaleToZero) && self.scaleToZero == 'WhenNothingPending')",
            "0 needs scaleToZero: WhenNothingPending",
            "minReplicas",
        ),
    ),
    Authentication: (
        _credentials("username", _WITH_PASSWORD),
        _credentials("passwordSecret", _WITH_PASSWORD),
        _credentials("certificateAndKey", "['TLS']"),
        _credentials("oauth", "['OAuthBearer']"),
    ),
    OAuth: (
        Rule(
            "!has(self.trustedCertificate) || self.tokenEndpointUrl.startsWith('https://')",
            "is for https://, and tokenEndpointUrl begins with http://",
            "trustedCertificate",
        ),
    ),
    RedisConnection: (
        Rule("has(self.url) != has(self.urlSecret)", "set exactly one of url and urlSecret"),
        Rule(
            "!has(self.tls) || !has(self.url) || self.url.startsWith('rediss:')",
            "is for rediss://, and url begins with redis://",
            "tls",
        ),
    ),
    ClassBackendSpec: (Rule("has(self.redis) || self.type != 'RedisZset'", "is required for type RedisZset", "redis"),),
    ExecutorsTemplate: (
        Rule("!has(self.min) || !has(self.max) || self.min <= self.max", "must not be more than max", "min"),
    ),
    DelayTopic: (
        Rule(
            "has(self.spec.delayClassName) == has(oldSelf.spec.delayClassName)"
            " ? !has(self.spec.delayClassName) || self.spec.delayClassName == oldSelf.spec.delayClassName"
            " : has(self.spec.delayClassName) && has(oldSelf.status) && has(oldSelf.status.effective)"
            " && has(oldSelf.status.effective.delayClass)"
            " && self.spec.delayClassName == oldSelf.status.effective.delayClass",
            "cannot be changed: drain this DelayTopic and make another; without it, it may name the class in force",
            "spec.delayClassName",
        ),
    ),
    RecurringRecordSpec: (
        Rule(
            "self.delayTopic == oldSelf.delayTopic",
            "cannot be changed, as what waits would recur on behind the former one: make another RecurringRecord",
            "delayTopic",
        ),
        Rule("has(self.cron) != has(self.every)", "set exactly one of cron and every"),
        Rule("!has(self.timeZone) || has(self.cron)", "goes with cron alone", "timeZone"),
        Rule(
            "has(self.catchUp) == (has(self.missed) && self.missed == 'All')",
            "goes with missed: All, which needs it",
            "catchUp",
        ),
        Rule("!has(self.from) || !has(self.until) || self.from < self.until", "must be after from", "until"),
        Rule(
            "!has(self.jitter) || !has(self.every) || duration(self.jitter) <= duration(self.every)",
            "must not be longer than every",
            "jitter",
        ),
    ),
    DelayClassSpec: (
        Rule(
            "!has(self.limits) || !has(self.limits.maxDelay) || !has(self.defaults) || !has(self.defaults.maxDelay)"
            " || duration(self.defaults.maxDelay) <= duration(self.limits.maxDelay)",
            "'is ' + self.defaults.maxDelay + ', longer than limits.maxDelay (' + self.limits.maxDelay + ')'",
            "defaults.maxDelay",
            is_expression=True,
        ),
        Rule(
            "!has(self.limits) || !has(self.limits.minPrecision)"
            " || !has(self.defaults) || !has(self.defaults.precision)"
            " || duration(self.defaults.precision) >= duration(self.limits.minPrecision)",
            "'is ' + self.defaults.precision + ', finer than limits.minPrecision (' + self.limits.minPrecision + ')'",
            "defaults.precision",
            is_expression=True,
        ),
        Rule(
            "!has(self.limits) || !has(self.limits.maxPartitions)"
            " || !has(self.defaults) || !has(self.defaults.partitions)"
            " || self.defaults.partitions <= self.limits.maxPartitions",
            "must not be more than limits.maxPartitions",
            "defaults.partitions",
        ),
    ),
}


def rules_of(model: type[Model]) -> list[Rule]:
    """Return the rules of the model and of those that it extends, the general ones first."""
    return [rule for base in reversed(model.__mro__) for rule in RULES.get(base, ())]
