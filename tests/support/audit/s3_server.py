"""A real S3 server over a folder: versitygw, on a port that survives a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from delaytopic_local.servers.process import ManagedProcess, accepts_connections, free_port
from delaytopic_process.waiting import wait_until

BUCKET: Final = "audits"
START_S: Final = 30.0
# Words that are part of no name: a test looks for them where they must not be.
_KEY: Final = "AKIAUDITSTEST"
_SECRET: Final = "hush-little-ledger"


class S3Server:
    """One server with one bucket. What it has answered for is on disk."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Nothing is started yet."""
        self.port = free_port()
        data, metadata = folder / "data", folder / "metadata"
        (data / BUCKET).mkdir(parents=True)
        metadata.mkdir()
        # Metadata is in files, as a folder of temporary files may have no extended attributes.
        command = [str(program), "--quiet", "--port", f"127.0.0.1:{self.port}", "--access", _KEY, "--secret", _SECRET]
        posix = ["posix", "--sidecar", str(metadata), str(data)]
        self._process = ManagedProcess("S3", [*command, *posix], log_file=folder / "server.log")

    def url(self, path: str) -> str:
        """Return the URL of a folder in its bucket, for Spark."""
        return f"s3a://{BUCKET}/{path}"

    def options_of_others(self) -> dict[str, str]:
        """Return how readers without Spark reach it, by the names that AWS' own tools have."""
        keys = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET, "AWS_REGION": "us-east-1"}
        return {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ALLOW_HTTP": "true"}

    def start(self) -> None:
        """Start it, or start it again, and wait until it listens."""
        self._process.start()
        assert wait_until(lambda: accepts_connections(self.port), timeout_seconds=START_S), self._process.log_tail()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()


def s3_options(server: S3Server) -> dict[str, str]:
    """Return Hadoop's settings for it; requests are given up soon, as a test has no minutes."""
    return {
        "fs.s3a.endpoint": f"http://127.0.0.1:{server.port}",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": _KEY,
        "fs.s3a.secret.key": _SECRET,
        "fs.s3a.attempts.maximum": "1",
        "fs.s3a.retry.limit": "1",
        "fs.s3a.retry.interval": "50ms",
        "fs.s3a.connection.establish.timeout": "2s",
    }
