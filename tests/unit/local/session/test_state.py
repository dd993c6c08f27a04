from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.state import (
    LocalState,
    claimed_name,
    read_running_state,
    remove_state,
    running_states,
    state_folder,
    write_state,
)
from delaytopic_process.errors import InputError

SHOP = KnownTopic("shop/reminders", "shop.delayed", "shop.reminders", "shop.delayed.dlq", ("shop.*",))
POST = KnownTopic("post/letters", "post.delayed", "post.letters", "post.delayed.dlq")


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DELAYTOPIC_LOCAL", raising=False)


def state(name: str = "local", *topics: KnownTopic, pid: int | None = None) -> LocalState:
    return LocalState(pid or os.getpid(), "127.0.0.1:1", None, topics, ("http://127.0.0.1:2",), None, name)


def test_a_running_local_is_found() -> None:
    write_state(state("local", SHOP))

    assert read_running_state() == state("local", SHOP)


def test_nothing_runs_at_first() -> None:
    assert read_running_state() is None


def test_a_local_that_was_killed_is_not_found() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    write_state(state(pid=ended.pid))

    assert read_running_state() is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": 1}', "\0"])
def test_a_damaged_file_counts_as_none(content: str) -> None:
    state_folder().mkdir(parents=True)
    (state_folder() / "local.json").write_text(content, encoding="utf-8")

    assert read_running_state() is None


def test_the_end_of_one_leaves_the_other() -> None:
    write_state(state("local", SHOP))
    write_state(state("local-2", POST))

    remove_state("local-2")

    assert running_states() == [state("local", SHOP)]


def test_of_several_the_one_that_has_the_topic_is_meant() -> None:
    write_state(state("local", SHOP))
    write_state(state("local-2", POST))

    meant = [read_running_state(topic) for topic in ("shop.delayed", "post.letters", "post/letters", "letters")]

    assert meant == [state("local", SHOP), *[state("local-2", POST)] * 3]


@pytest.mark.parametrize("topic", [None, "shop.delayed", "unknown"])
def test_where_several_may_be_meant_one_has_to_be_named(topic: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(state("local", SHOP))
    write_state(state("other", SHOP))

    with pytest.raises(InputError, match="several `delaytopic local` run here: local, other"):
        read_running_state(topic)
    assert read_running_state(topic, "other") == state("other", SHOP)
    monkeypatch.setenv("DELAYTOPIC_LOCAL", "local")
    assert read_running_state(topic) == state("local", SHOP)


def test_a_name_that_nobody_has_is_refused() -> None:
    write_state(state("local", SHOP))

    with pytest.raises(InputError, match="no `delaytopic local` named shop runs here; running: local"):
        read_running_state(name="shop")


def test_names_are_given_once_and_come_back() -> None:
    with claimed_name(None) as first, claimed_name(None) as second:
        with pytest.raises(InputError, match="named local runs here"), claimed_name("local"):
            pass
        with claimed_name("mine") as third:
            names = (first, second, third)
    with claimed_name(None) as again:
        assert (*names, again) == ("local", "local-2", "mine", "local")


def test_a_state_survives_the_file() -> None:
    odd = replace(state("x", SHOP, POST), redis_url="redis://h:1", gateway_url="http://127.0.0.1:3")
    write_state(odd)

    assert running_states() == [odd]
