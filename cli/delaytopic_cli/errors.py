"""The errors of this package: one tree, each error says whose fault it is and what to do."""

from __future__ import annotations


class CliError(Exception):
    """Base of everything this package raises on purpose. The command prints its text as one line.

    `exit_code` is what the command exits with when the error reaches the top.
    """

    exit_code = 1


class InputError(CliError):
    """The caller's arguments or files are wrong; the text names the argument and what is allowed."""

    exit_code = 2


class ExtraMissingError(CliError):
    """A Python package that this command needs is not installed; the text has the command that installs it."""


class EmbeddedServerError(CliError):
    """An embedded Kafka or Redis could not be obtained, started or stopped; the machine's or ours."""

    exit_code = 3


class PackageMissingError(EmbeddedServerError):
    """A wheel or a program that the embedded servers need is not installed."""


class DownloadError(EmbeddedServerError):
    """The jars of Apache Kafka are not cached yet and could not be downloaded."""


class ServerStartError(EmbeddedServerError):
    """A server ended, or did not answer in time, while it was started; the text carries the end of its log."""


class KafkaUnreachableError(CliError):
    """No broker answered at the given bootstrap servers."""

    exit_code = 4


class TopicError(CliError):
    """Kafka refused to create, change or describe a topic."""

    exit_code = 4


class RightMissingError(TopicError):
    """The login lacks a right in Kafka; the text says which."""


class SupersededError(TopicError):
    """Another one has begun to do the same, and goes on behind what this one did."""


class RelayError(CliError):
    """The relay could not be started, or ended again and again."""

    exit_code = 5


class RelayUnreachableError(CliError):
    """No relay answered at the given addresses."""

    exit_code = 5


class GatewayUnreachableError(CliError):
    """No gateway answered at the given address, or it could not answer now."""

    exit_code = 5


class RecordMissingError(CliError):
    """There is no such DelayTopic or pending record; it may have been delivered meanwhile."""

    exit_code = 5


class ConflictError(CliError):
    """A request that does not fit the DelayTopic, or the record as it is now."""

    exit_code = 5


class UnauthenticatedError(CliError):
    """Nobody knows who asks: the request shows no identity, or one that is not accepted."""


class ForbiddenError(CliError):
    """The caller is known, and may not do this; the text names the right that it takes."""


class ApiServerUnreachableError(CliError):
    """The Kubernetes API server does not answer, or not the gateway; nothing is allowed until it does."""


class BusyError(CliError):
    """A server has too much to do just now, or too much of one caller; the same request succeeds later."""

    exit_code = 5


class AuditFailedError(CliError):
    """Records were lost, delivered twice, early or to the wrong place."""

    exit_code = 6


class CannotJudge(CliError):
    """A file or the cluster cannot be read, so that nothing can be said; a pipeline must not take it for a plan."""

    exit_code = 1
