"""Edge: the file by which the other commands find the `delaytopic local` that runs on this machine."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalState:
    """A running `delaytopic local`: its process, where its Kafka is, its source topics, and its relays' pages.

    `gateway_url` is where its console and REST are; `directory` its folder.
    """

    pid: int
    bootstrap_servers: str
    redis_url: str | None
    source_topics: tuple[str, ...]
    relay_urls: tuple[str, ...] = ()
    gateway_url: str | None = None
    directory: str | None = None


def state_file() -> Path:
    """Return `local.json` under $XDG_STATE_HOME/delaytopic, or else under ~/.local/state/delaytopic."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "delaytopic" / "local.json"


def write_state(state: LocalState) -> None:
    """Say that this process runs; the last one started is the one that is found."""
    file = state_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{state.pid}")
    draft.write_text(json.dumps(asdict(state)), encoding="utf-8")
    draft.replace(file)


def read_running_state() -> LocalState | None:
    """Return the `delaytopic local` that runs now, or None."""
    try:
        content = json.loads(state_file().read_text(encoding="utf-8"))
        lists = {name: tuple(content[name]) for name in ("source_topics", "relay_urls")}
        state = LocalState(**{**content, **lists})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return state if _is_running(state.pid) else None


def remove_state(pid: int) -> None:
    """Say that this process has ended; another one's file is left alone."""
    state = read_running_state()
    if state is not None and state.pid == pid:
        state_file().unlink(missing_ok=True)


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
