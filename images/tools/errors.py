"""Errors of building images; each says what to do."""

from __future__ import annotations


class ImagesError(Exception):
    """The root: whatever stops a build of images."""


class LockError(ImagesError):
    """A lock is missing, stale or cannot be resolved anew."""


class WheelsError(ImagesError):
    """Wheels could not be downloaded or built."""


class JarsError(ImagesError):
    """Jars could not be downloaded, or are not those of the lock."""


class DockerError(ImagesError):
    """The docker command is missing, reaches no engine, or a build failed."""


class SourceError(ImagesError):
    """The folder given as source holds no delaytopic."""
