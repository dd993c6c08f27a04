"""Edge: the files by which the other commands find each `delaytopic local` that runs on this machine."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path

from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_process.errors import InputError

DEFAULT_NAME = "local"
NAME_VARIABLE = "DELAYTOPIC_LOCAL"


@dataclass(frozen=True, slots=True)
class LocalState:
    """A running `delaytopic local`: its process, where its Kafka is, its DelayTopics, and its relays' pages.

    `gateway_url` is where its console and REST are; `directory` its folder; `clock` machine or manual.
    """

    pid: int
    bootstrap_servers: str
    redis_url: str | None
    topics: tuple[KnownTopic, ...] = ()
    relay_urls: tuple[str, ...] = ()
    gateway_url: str | None = None
    name: str = DEFAULT_NAME
    directory: str | None = None
    clock: str = "machine"

    @classmethod
    def parse(cls, text: str) -> LocalState:
        """Return what a file says; raises ValueError, TypeError and KeyError for what no `local` wrote."""
        content = json.loads(text)
        topics = tuple(KnownTopic(**{**topic, "allowed": tuple(topic["allowed"])}) for topic in content["topics"])
        return cls(**{**content, "topics": topics, "relay_urls": tuple(content["relay_urls"])})


def state_folder() -> Path:
    """Return the folder `local` under $XDG_STATE_HOME/delaytopic, or else under ~/.local/state/delaytopic."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "delaytopic" / "local"


@contextmanager
def claimed_name(wanted: str | None) -> Iterator[str]:
    """Yield a name that no other running `local` has: the wanted one, or the first that is free.

    The kernel gives it back when this process ends. Raises InputError when the wanted one is taken.
    """
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    names = [wanted] if wanted else chain([DEFAULT_NAME], (f"{DEFAULT_NAME}-{number}" for number in count(2)))
    for name in names:
        with (folder / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield name
            return
    raise InputError(f"--name: another `delaytopic local` named {wanted} runs here; choose another name")


def write_state(state: LocalState) -> None:
    """Say that this process runs."""
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{state.name}.{state.pid}"
    draft.write_text(json.dumps(asdict(state)), encoding="utf-8")
    draft.replace(_file(state.name))


def running_states() -> list[LocalState]:
    """Return each `delaytopic local` that runs now, in the order of their names."""
    files = sorted(state_folder().glob("*.json"))
    return [state for file in files if (state := _read(file)) is not None and _is_running(state.pid)]


def read_running_state(topic: str | None = None, name: str | None = None) -> LocalState | None:
    """Return the `delaytopic local` that runs now, or None.

    Of several, the one with this name, or else the only one that has the topic. Raises InputError when that leaves
    several, and when none has the name.
    """
    running = running_states()
    name = name or os.environ.get(NAME_VARIABLE) or None
    names = ", ".join(state.name for state in running)
    if name is not None:
        named = [state for state in running if state.name == name]
        if not named:
            raise InputError(f"no `delaytopic local` named {name} runs here; running: {names or 'none'}")
        return named[0]
    if topic is not None and len(running) > 1:
        running = [state for state in running if any(each.is_meant_by(topic) for each in state.topics)] or running
    if len(running) > 1:
        choose = f"choose one with --local NAME or {NAME_VARIABLE}=NAME"
        raise InputError(f"several `delaytopic local` run here: {names}; {choose}")
    return running[0] if running else None


def remove_state(name: str) -> None:
    """Say that this process, which has the name, has ended."""
    _file(name).unlink(missing_ok=True)


def _file(name: str) -> Path:
    return state_folder() / f"{name}.json"


def _read(file: Path) -> LocalState | None:
    try:
        return LocalState.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def last_report(directory: Path, namespace: str, name: str) -> Path:
    """Return where the last audit of a DelayTopic of a session leaves its report (JSON), for the session's console."""
    return directory / "audits" / f"{namespace}.{name}.json"


def read_last_report(directory: Path, namespace: str, name: str) -> str | None:
    """Return that report; None while there is none."""
    try:
        return last_report(directory, namespace, name).read_text(encoding="utf-8")
    except OSError:
        return None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
