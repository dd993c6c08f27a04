"""Edge: holds the Lease while it can, and says whether this operator may write. The decisions are `lease`'s."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread, local
from typing import Any

import structlog

from delaytopic_operator.clock import epoch_ms, monotonic_ms
from delaytopic_operator.errors import Conflict, NotLeading, OperatorError
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model.kinds import LEASE
from delaytopic_operator.runtime.lease import Document, Sighting, Step, Terms, acquired, decide, released, renewed

STOP_SECONDS = 1.5

log = structlog.get_logger()


class LeaderElection:
    """One candidate, with a thread of its own between `start` and `stop`.

    A leader may begin to write until two thirds of the Lease's duration after the start of its last renewal, and waits
    for no answer beyond the end of it. A thread that did `bind` is refused, too, when leadership was lost and won again
    since then: what it knows is old.
    """

    def __init__(
        self,
        kube: KubeApi,
        namespace: str,
        name: str,
        identity: str,
        terms: Terms,
        on_leading: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`kube` must write whoever leads, with a deadline below a third of the Lease's duration.

        `identity` belongs to this process and no other, ever. The callbacks come from the election's thread.
        """
        self._kube = kube
        self._place = (namespace, name)
        self._identity = identity
        self._terms = terms
        self._on_leading = on_leading
        self._on_lost = on_lost
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="leader-election", daemon=True)
        self._document: Document | None = None
        """The lease as last written by this operator, or None: read it first."""
        self._sighting: Sighting | None = None
        self._lock = Lock()
        self._renewed_ms: int | None = None
        """Start of the last renewal that succeeded; None: not the holder."""
        self._was_leading = False
        self._term = 0
        self._bound = local()

    # -- asking

    @property
    def is_leader(self) -> bool:
        """Return whether this operator may begin to write now."""
        return self._left_ms(self._terms.writable_ms) > 0

    def guard(self) -> float:
        """Return for how many seconds writes may go on; raises `NotLeading`."""
        if not self.is_leader:
            raise NotLeading("this operator does not lead, or could not renew its Lease in time: it writes nothing")
        if getattr(self._bound, "term", self._term) != self._term:
            raise NotLeading("this operator lost the lead meanwhile, and won it again: the reconciliation starts over")
        return self._left_ms(self._terms.duration_ms) / 1_000

    def bind(self) -> None:
        """Bind all that this thread does from now on to the current term."""
        self._bound.term = self._term

    # -- running

    def start(self) -> None:
        """Become a candidate."""
        self._thread.start()

    def stop(self, release: bool = True) -> None:
        """Be no candidate any more. `release`: others may lead at once; only when nothing here writes any more."""
        self._stopping.set()
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            release = False  # a renewal is on its way, and nobody knows whether it arrives after the release
        held = self._document if self.is_leader else None
        self._set_renewed(None)
        if held is None or not release:
            return
        try:
            self._kube.replace(released(held, epoch_ms()))
            log.info("lease released", lease=self._place[1])
        except OperatorError as error:
            log.warning("lease not released; others wait for its end", reason=str(error))

    def _run(self) -> None:
        while not self._stopping.is_set():
            again_at_ms = monotonic_ms() + self._terms.retry_ms
            try:
                again_at_ms = self._turn()
            except Conflict:
                self._document = None
            except OperatorError as error:
                log.warning("lease not reached", reason=str(error))
            except Exception:
                log.exception("leader election failed; tried again")
            self._tell()
            self._stopping.wait(max(0, again_at_ms - monotonic_ms()) / 1_000)

    def _turn(self) -> int:
        """One decision and what follows from it; answers with when to decide again (monotonic ms)."""
        started_ms = monotonic_ms()
        if self._document is not None:
            self._write(renewed(self._document, epoch_ms()), started_ms)
            return started_ms + self._terms.retry_ms
        document = self._kube.get(LEASE, *self._place)
        decision = decide(document, self._sighting, self._identity, self._terms, monotonic_ms())
        self._sighting = decision.sighting
        if decision.step is Step.WAIT:
            self._set_renewed(None)
        elif decision.step is Step.RENEW and document is not None:
            self._write(renewed(document, epoch_ms()), started_ms)
        else:
            self._write(acquired(document, *self._place, self._identity, self._terms, epoch_ms()), started_ms)
        return decision.again_at_ms

    def _write(self, document: Document, started_ms: int) -> None:
        exists = "resourceVersion" in document["metadata"]
        self._document = (self._kube.replace if exists else self._kube.create)(document)
        self._set_renewed(started_ms)

    def _tell(self) -> None:
        leading = self.is_leader
        if leading and not self._was_leading:
            self._term += 1
            self._was_leading = True
            log.info("leading", identity=self._identity)
            self._on_leading()
        elif self._was_leading and not leading:
            self._was_leading = False
            log.warning("not leading any more", identity=self._identity)
            self._on_lost()

    def _set_renewed(self, at_ms: int | None) -> None:
        with self._lock:
            self._renewed_ms = at_ms

    def _left_ms(self, of_ms: int) -> int:
        with self._lock:
            renewed_ms: Any = self._renewed_ms
        return 0 if renewed_ms is None else int(renewed_ms) + of_ms - monotonic_ms()
