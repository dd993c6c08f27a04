"""The pytest plugin of `pip install 'delaytopic[testing]'`: the fixture `delay_topic`.

It is imported by each run of pytest where delaytopic is installed, so that it imports what it needs when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from delaytopic_local.testing.servers import SessionServers
    from delaytopic_local.testing.topic import TopicUnderTest


@pytest.fixture(scope="session")
def delaytopic_servers() -> Iterator[SessionServers]:
    """Run Kafka and Redis for this session, and relays for each file that a test names."""
    try:
        from delaytopic_local.testing.servers import session_servers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        from delaytopic_process.extras import missing_package  # noqa: PLC0415

        pytest.fail(missing_package(error, "testing"), pytrace=False)
    with session_servers() as servers:
        yield servers


@pytest.fixture
def delay_topic(
    delaytopic_servers: SessionServers, request: pytest.FixtureRequest
) -> Callable[[str | PathLike[str]], TopicUnderTest]:
    """Return a function that runs the DelayTopic of a YAML file, by its path from the test's own folder.

    A file with several DelayTopics takes the name of one as well. What it returns sees what this test produces alone.
    """

    def run(file: str | PathLike[str], name: str | None = None) -> TopicUnderTest:
        return delaytopic_servers.topic(Path(request.path).parent / file, name)

    return run
