"""Edge: finds the batch by which relays end, as processes of their own read it (`unpacking`)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

import structlog

from delaytopic_relay.errors import Unavailable
from delaytopic_relay.kafka.settings import Settings, examiner_settings
from delaytopic_relay.kafka.unpacking import OUT_OF_MEMORY
from delaytopic_relay.ports import TooLarge

_PROGRAM: Final = Path(__file__).with_name("unpacking.py")
_REFUSED: Final = frozenset({OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS})
"""Exit codes of a process that was refused memory: its own, and what the client, the kernel and chance make of it."""

log = structlog.get_logger()


class Trial(NamedTuple):
    """The means by which partitions of a topic are read on trial."""

    connection: Settings
    group_id: str
    client_id: str
    topic: str
    limit_bytes: int


class _Ended(NamedTuple):
    """The end of a trial: whether memory was refused, and the offset behind the last that was read."""

    died: bool
    behind: int


class KafkaExaminer:
    """Implements `Examiner`; each partition has a thread that waits for its processes."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._looks: dict[int, _Look] = {}

    def examine(self, partition: int, start: int, until: int) -> TooLarge | None:
        """See `Examiner.examine`."""
        look = self._looks.get(partition)
        if look is None or not look.tells_of(start):
            self.forget(partition)
            look = self._looks[partition] = _Look(self._trial, partition, start, until)
            look.start()
        if look.is_alive():
            raise Unavailable(
                f"relays have ended one after another as they read partition {partition} from offset {start} on: a "
                "process of its own reads there first"
            )
        if look.found is None:
            self.forget(partition)
        return look.found

    def forget(self, partition: int) -> None:
        """See `Examiner.forget`."""
        look = self._looks.pop(partition, None)
        if look is not None:
            look.stop()

    def close(self) -> None:
        """End all processes."""
        for partition in [*self._looks]:
            self.forget(partition)


class _Look(Thread):
    """One look at a partition: reads as a relay does, and batch by batch from where that ended."""

    def __init__(self, trial: Trial, partition: int, start: int, until: int) -> None:
        super().__init__(name=f"examines-{partition}", daemon=True)
        self._trial = trial
        self._partition = partition
        self._start = start
        self._until = until
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.found: TooLarge | None = None

    def tells_of(self, start: int) -> bool:
        """Return whether what is found, or looked for, is at this offset or behind it."""
        return start < self.found.behind if self.found is not None else start == self._start

    def run(self) -> None:
        """Find out."""
        try:
            self.found = self._find()
        except OSError as error:
            log.warning("could not read on trial", partition=self._partition, reason=str(error))

    def stop(self) -> None:
        """End the process that reads, and start no other."""
        self._stopped = True
        if self._child is not None:
            self._child.kill()

    def _find(self) -> TooLarge | None:
        start, alone = self._start, False
        while not self._stopped:
            ended = self._read(start, alone=alone)
            if not ended.died:
                return None
            if alone and ended.behind == start:
                log.warning("a batch cannot be unpacked", partition=self._partition, offset=start)
                return TooLarge(start, self._behind(start), self._trial.limit_bytes)
            start, alone = ended.behind, True
        return None

    def _behind(self, offset: int) -> int:
        """Return the first offset behind a batch: reading from any in it unpacks all of it."""
        inside, step = offset, 1
        while self._unpacks_it(offset + step):
            inside, step = offset + step, 2 * step
        behind = offset + step
        while behind - inside > 1:
            middle = (inside + behind) // 2
            if self._unpacks_it(middle):
                inside = middle
            else:
                behind = middle
        return behind

    def _unpacks_it(self, offset: int) -> bool:
        if self._stopped:
            return False
        ended = self._read(offset, alone=True, first=True)
        return ended.died and ended.behind == offset

    def _read(self, start: int, *, alone: bool, first: bool = False) -> _Ended:
        """Read in a process of its own. Raises `OSError` where none can be started."""
        trial = self._trial
        settings = examiner_settings(trial.connection, trial.group_id, trial.client_id, alone=alone)
        asked = {
            "settings": settings,
            "topic": trial.topic,
            "partition": self._partition,
            "start": start,
            "until": self._until,
            "limitBytes": trial.limit_bytes,
            "alone": alone,
            "first": first,
        }
        command = [sys.executable, "-P", str(_PROGRAM)]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere) as self._child:
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            self._child.stdin.write(json.dumps(asked).encode())
            self._child.stdin.close()
            last = b""
            for line in self._child.stdout:
                last = line.strip()
        refused = self._child.returncode in _REFUSED
        behind = int(last) if last.isdigit() else start
        # Without a line it had not begun to read.
        return _Ended(bool(last) and refused and not self._stopped, behind)
