"""The errors of embedded servers and of relays on this machine: each says whose fault it is and what to do."""

from __future__ import annotations

from delaytopic_process.errors import ProgramError


class EmbeddedServerError(ProgramError):
    """An embedded Kafka or Redis could not be obtained, started or stopped; the machine's or ours."""

    exit_code = 3


class PackageMissingError(EmbeddedServerError):
    """A wheel or a program that the embedded servers need is not installed."""


class DownloadError(EmbeddedServerError):
    """The jars of Apache Kafka are not cached yet and could not be downloaded."""


class ServerStartError(EmbeddedServerError):
    """A server ended, or did not answer in time, while it was started; the text carries the end of its log."""


class RelayError(ProgramError):
    """The relay could not be started, or ended again and again."""

    exit_code = 5


class AuditFailedError(ProgramError):
    """Records were lost, delivered twice, early or to the wrong place."""

    exit_code = 6
