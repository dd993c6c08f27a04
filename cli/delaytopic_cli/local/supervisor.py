"""Edge: keeps relays running: starts one again that has ended, and gives up when that leads nowhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delaytopic_cli.errors import RelayError
from delaytopic_cli.local.relay_process import RelayProcess

EXIT_MISCONFIGURED = 2
SHORT_LIFE_SECONDS = 15.0
MOST_SHORT_LIVES = 5
LONGEST_PAUSE_SECONDS = 8.0


@dataclass(slots=True)
class _Life:
    started_s: float
    short_lives: int = 0
    restart_at_s: float | None = None


class Supervisor:
    """Watches over relays; `tick` is to be called about once a second."""

    def __init__(
        self, relays: Sequence[RelayProcess], *, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`say` gets a line whenever a relay has ended and when it is started again."""
        self._relays = relays
        self._say = say
        self._clock = clock
        self._lives = {relay.name: _Life(clock()) for relay in relays}

    def start(self) -> None:
        """Start all."""
        for relay in self._relays:
            self._start(relay)

    def tick(self) -> None:
        """Start those again whose time has come.

        Raises RelayError when a relay says that it is misconfigured, or has ended again and again soon after its start.
        """
        for relay in self._relays:
            life = self._lives[relay.name]
            if relay.is_running():
                continue
            if life.restart_at_s is None:
                self._note_the_end(relay, life)
            elif self._clock() >= life.restart_at_s:
                self._say(f"starting relay {relay.name} again")
                self._start(relay)

    def stop(self) -> None:
        """Let all hand over at the same time, and wait for them."""
        for relay in self._relays:
            relay.ask_to_stop()
        for relay in self._relays:
            relay.stop()

    def _start(self, relay: RelayProcess) -> None:
        life = self._lives[relay.name]
        life.started_s, life.restart_at_s = self._clock(), None
        relay.start()

    def _note_the_end(self, relay: RelayProcess, life: _Life) -> None:
        code = relay.exit_code
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        if code == EXIT_MISCONFIGURED:
            raise RelayError(f"relay {relay.name} cannot run like this: {relay.last_words()}")
        lived_s = self._clock() - life.started_s
        life.short_lives = life.short_lives + 1 if lived_s < SHORT_LIFE_SECONDS else 0
        if life.short_lives >= MOST_SHORT_LIVES:
            raise RelayError(
                f"relay {relay.name} {how}, {MOST_SHORT_LIVES} times in a row soon after its start; "
                f"the end of {relay.log_file}:\n{relay.last_words()}"
            )
        pause_s = 0.0 if life.short_lives == 0 else min(LONGEST_PAUSE_SECONDS, 2.0 ** (life.short_lives - 1))
        life.restart_at_s = self._clock() + pause_s
        self._say(f"relay {relay.name} {how}; starting it again" + (f" in {pause_s:.0f} s" if pause_s else ""))
