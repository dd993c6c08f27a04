"""The errors of the gateway and of its clients: each says whose fault it is and what to do."""

from __future__ import annotations

from delaytopic_process.errors import ProgramError


class KafkaUnreachableError(ProgramError):
    """No broker answered at the given bootstrap servers."""

    exit_code = 4


class TopicError(ProgramError):
    """Kafka refused to create, change or describe a topic."""

    exit_code = 4


class TopicMissingError(TopicError):
    """Kafka has no topic of this name, or shows none to this login."""


class RightMissingError(TopicError):
    """The login lacks a right in Kafka; the text says which."""


class RelayUnreachableError(ProgramError):
    """No relay answered at the given addresses."""

    exit_code = 5


class GatewayUnreachableError(ProgramError):
    """No gateway answered at the given address, or it could not answer now."""

    exit_code = 5


class RecordMissingError(ProgramError):
    """There is no such DelayTopic or pending record; it may have been delivered meanwhile."""

    exit_code = 5


class ConflictError(ProgramError):
    """A request that does not fit the DelayTopic, or the record as it is now."""

    exit_code = 5


class SupersededError(ConflictError):
    """Another one has begun to do the same, and goes on behind what this one did."""


class UnauthenticatedError(ProgramError):
    """Nobody knows who asks: the request shows no identity, or one that is not accepted."""


class ForbiddenError(ProgramError):
    """The caller is known, and may not do this; the text names the right that it takes."""


class ApiServerUnreachableError(ProgramError):
    """The Kubernetes API server does not answer, or not the gateway; nothing is allowed until it does."""


class BusyError(ProgramError):
    """A server has too much to do just now, or too much of one caller; the same request succeeds later."""

    exit_code = 5
