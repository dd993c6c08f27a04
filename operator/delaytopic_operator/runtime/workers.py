"""Edge: the threads that do the reconciliations, one key at a time each, as the queue says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Condition, Thread
from time import monotonic

import structlog

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.errors import ApiServerUnavailable, NotLeading, OperatorError
from delaytopic_operator.model.kinds import DELAY_TOPIC, Kind
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.report.metrics import WorkLoad
from delaytopic_operator.runtime.workqueue import WorkQueue

IDLE_SECONDS = 0.5
BLOCKED_MS = 10
"""The time after which a thread at work is taken to wait for somebody: another one goes on with what is due. A look
takes a fifth of it."""
UNEXPECTED = "Unexpected"

log = structlog.get_logger()

PassObserver = Callable[[str, float], None]
"""Told of each reconciliation: its result (`Success`, or the reason of its error) and its seconds."""


class Workers:
    """Does reconciliations between `start` and `stop`, while `may_run`."""

    def __init__(
        self,
        queue: WorkQueue,
        run: Callable[[Key, int, int], Result],
        count: int,
        may_run: Callable[[], bool],
        observe: PassObserver,
        kind: Kind = DELAY_TOPIC,
        debounce_ms: int = 0,
    ) -> None:
        """The queue belongs to the workers from now on. `run` is called in `count` threads, with
        a key, the time, and the time that was asked for.

        `kind` is that of the keys. So much later than `add` is called a key is due: what comes together is one look.
        """
        self._queue = queue
        self._run = run
        self._may_run = may_run
        self._observe = observe
        self._word = kind.name.lower()
        self._debounce_ms = debounce_ms
        self._changed = Condition()
        self._stopping = False
        self._watched_ms: int | None = None
        """The time that one of the idle threads waits for."""
        self._threads = [Thread(target=self._work, name=f"worker-{n}", daemon=True) for n in range(count)]

    def add(self, keys: Iterable[Key]) -> None:
        """Look at the keys now; forgotten where none may be reconciled: who may looks at everything first."""
        self.add_at(dict.fromkeys(keys, epoch_ms() + self._debounce_ms))

    def add_at(self, times: Mapping[Key, int]) -> None:
        """Look at each key at its time (epoch ms)."""
        if not times or not self._may_run():
            return
        with self._changed:
            for key, at_ms in times.items():
                self._queue.add(key, at_ms)
            self._changed.notify(len(times))

    def clear(self) -> None:
        """Forget what was added; reconciliations that run go on."""
        with self._changed:
            self._queue.clear()

    def load(self) -> WorkLoad:
        """Return what there is to do now."""
        now_ms = epoch_ms()
        with self._changed:
            return WorkLoad(self._queue.depth(now_ms), self._queue.oldest_age_ms(now_ms), self._queue.processing())

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def ask_to_stop(self) -> None:
        """Take no more keys; does not wait."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def stop(self, deadline_s: float) -> list[Key]:
        """Take no more keys, and wait for the reconciliations that run; those that did not end in time are returned."""
        ends = monotonic() + deadline_s
        self.ask_to_stop()
        for thread in self._threads:
            thread.join(max(0.0, ends - monotonic()))
        with self._changed:
            return list(self._queue.processing())

    def _work(self) -> None:
        while (due := self._next()) is not None:
            self._pass(*due)

    def _next(self) -> tuple[Key, int] | None:
        # A thread that is at work goes on with what is due, or will be in a moment: to wake a thread for each look,
        # with everything that has left the caches since, costs more than a quarter of the look. So does it to have
        # looks side by side, as one interpreter runs one of them at a time.
        early = True
        with self._changed:
            while not self._stopping:
                now_ms = epoch_ms()
                due_ms = self._queue.next_due_ms(now_ms) if self._may_run() else None
                others_ms = self._others_until_ms()
                if due_ms is not None and now_ms >= others_ms:
                    key = self._queue.get(now_ms, early=early)
                    if key is not None:
                        if self._watched_ms is None:
                            self._changed.notify()
                        return key, min(due_ms, now_ms)
                self._wait(max(due_ms, others_ms) if due_ms is not None else None, now_ms)
                early = False
        return None

    def _others_until_ms(self) -> int:
        """Return until when what is due is left to a thread at work: then it is blocked."""
        return max(self._queue.processing().values(), default=0) + BLOCKED_MS

    def _wait(self, due_ms: int | None, now_ms: int) -> None:
        """Wait for the next key as the only one of the idle threads: if all woke for each, that would cost more than
        the looks of thousands of keys.
        """
        if due_ms is None or (self._watched_ms is not None and self._watched_ms <= due_ms):
            self._changed.wait(IDLE_SECONDS)
            return
        self._watched_ms = due_ms
        self._changed.wait(min(IDLE_SECONDS, (due_ms - now_ms) / 1_000))
        if self._watched_ms == due_ms:
            self._watched_ms = None

    def _pass(self, key: Key, asked_for_ms: int) -> None:
        started = monotonic()
        outcome = "Success"
        try:
            result = self._run(key, epoch_ms(), asked_for_ms)
            with self._changed:
                self._queue.done(key, result.next_at_ms, result.cluster, result.early_ms)
                for other in result.others:
                    self._queue.add(other, epoch_ms())
                self._changed.notify(len(result.others))
        except NotLeading as error:
            outcome = error.reason
            with self._changed:
                self._queue.done(key)
        except BaseException as error:  # whatever a reconciliation does, its thread and all others go on
            outcome = error.reason if isinstance(error, OperatorError) else UNEXPECTED
            self._failed(key, error)
        finally:
            self._observe(outcome, monotonic() - started)

    def _failed(self, key: Key, error: BaseException) -> None:
        now_ms = epoch_ms()
        pause_s = error.retry_after_s if isinstance(error, ApiServerUnavailable) else None
        not_before_ms = None if pause_s is None else now_ms + int(pause_s * 1_000)
        with self._changed:
            again_ms = self._queue.add_rate_limited(key, now_ms, not_before_ms)
            times = self._queue.failures(key)
        expected = isinstance(error, OperatorError)
        log.warning(
            "reconciliation failed" if expected else "reconciliation failed: a bug of the operator's",
            reason=str(error),
            times=times,
            again_in_ms=again_ms - now_ms,
            exc_info=None if expected else error,
            **{self._word: str(key)},
        )
