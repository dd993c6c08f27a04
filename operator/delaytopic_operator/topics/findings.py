"""From the topics as they were found to what conditions say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delaytopic_api import Settings
from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.policy import RETENTION_MARGIN
from delaytopic_api.values import Duration
from delaytopic_operator.errors import KafkaUnavailable, OperatorError
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Finding
from delaytopic_operator.topics.ownership import Trouble
from delaytopic_operator.topics.rules import kept_ms

AS_SPECIFIED = "AsSpecified"
ALL_THERE = "source, target and dead-letter topic are there"


@dataclass(frozen=True, slots=True)
class Progress:
    """The steps that a reconciliation is about to take."""

    made: tuple[str, ...] = ()
    """Source, target or dead-letter topics that are made now."""
    buckets: tuple[str, ...] = ()
    """Bucket topics that are made now."""
    changed: tuple[str, ...] = ()
    """Topics that are changed now."""

    @property
    def sentence(self) -> str | None:
        """Return what is being done; None for nothing."""
        made = (*self.made, *self.buckets)
        parts = [f"creating {', '.join(made)}"] if made else []
        parts += [f"changing {', '.join(self.changed)}"] if self.changed else []
        return ", ".join(parts) or None


def topics_finding(troubles: Sequence[Trouble], advice: Sequence[str], progress: Progress) -> Finding:
    """TopicsReady: the gravest trouble gives the reason, and every one its sentence."""
    if troubles:
        gravest_first = sorted(troubles, key=lambda trouble: not trouble.stalled)
        return _topics(FALSE, gravest_first[0].reason, [trouble.sentence for trouble in gravest_first])
    if progress.made:
        return _topics(FALSE, "TopicMissing", [f"creating {', '.join(progress.made)}"])
    return _topics(TRUE, AS_SPECIFIED, [ALL_THERE, *advice])


def failed_finding(error: OperatorError) -> Finding:
    """TopicsReady when Kafka could not be asked, or did not do what was planned."""
    status = UNKNOWN if isinstance(error, KafkaUnavailable) else FALSE
    return Finding(ConditionType.TOPICS_READY, status, error.reason, str(error))


def backend_findings(
    settings: Settings, source_config: Mapping[str, str] | None, buckets: Sequence[Trouble], absent: Sequence[str]
) -> Iterator[Finding]:
    """Return what topics have to say about BackendReady, the worst first.

    `source_config` is None while it is not known. `buckets` are troubles of bucket topics, `absent` those of them that
    are being made.
    """
    worst: list[Finding] = []
    others: list[Finding] = []
    if buckets:
        worst.append(_backend(FALSE, "BucketTopicsMissing", "; ".join(trouble.sentence for trouble in buckets)))
    elif absent:
        worst.append(_backend(FALSE, "BucketTopicsMissing", f"creating {', '.join(absent)}"))
    for finding in _retention(settings, source_config or {}):
        (worst if finding.status is FALSE else others).append(finding)
    yield from [*worst, *others]


def _retention(settings: Settings, config: Mapping[str, str]) -> Iterator[Finding]:
    topic, max_delay = settings.source.topic, settings.schedule.max_delay
    kept = kept_ms(config)
    if kept is not None and kept < max_delay.ms:
        yield _backend(
            FALSE,
            "RetentionTooShort",
            f"the source topic {topic} keeps records for {_duration(kept)}, and they may wait for {max_delay}: some "
            f"would be gone before they are due, or could not be found again after a loss of the backend; set its "
            f"retention.ms to {max_delay.ms + RETENTION_MARGIN.ms} or more, or lower spec.schedule.maxDelay",
        )
    elif kept is not None and kept < max_delay.ms + RETENTION_MARGIN.ms and settings.source.retention is not None:
        yield _backend(
            TRUE,
            "RetentionTooShort",
            f"the source topic {topic} keeps records for {_duration(kept)}, hardly longer than they may wait "
            f"({max_delay}): a lost backend must be noticed and mended before; {RETENTION_MARGIN} more are safe",
        )
    size = config.get("retention.bytes", "-1")
    if size != "-1" and kept_by_time(config):
        yield _backend(
            TRUE,
            "RetentionBySize",
            f"the source topic {topic} has retention.bytes={size}: under load, records may be removed that are still "
            "pending; set it to -1",
        )


def kept_by_time(config: Mapping[str, str]) -> bool:
    """Return whether old records are removed at all."""
    return "delete" in config.get("cleanup.policy", "delete")


def _duration(ms: int) -> str:
    return str(Duration.of_ms(ms)) if ms < 100_000 * 3_600_000 else f"{ms} ms"


def _topics(status: ConditionStatus, reason: str, sentences: Sequence[str]) -> Finding:
    return Finding(ConditionType.TOPICS_READY, status, reason, "; ".join(sentences))


def _backend(status: ConditionStatus, reason: str, sentence: str) -> Finding:
    return Finding(ConditionType.BACKEND_READY, status, reason, sentence)
