from __future__ import annotations

import subprocess
import sys

import pytest

DOCUMENTS_OF_PEOPLE = ["delay_class", "delay_topic", "recurring_record", "settings", "status"]
"""The models of what a relay never reads: they take as long to make as half of what it does read."""


def imported_by(*modules: str) -> set[str]:
    script = f"import sys; import {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {*done.stdout.split()}


@pytest.fixture(scope="module")
def of_a_start() -> set[str]:
    return imported_by("delaytopic_relay.__main__", "delaytopic_relay.backlog.kafka.opening")


def test_a_start_makes_no_models_of_documents_that_people_write(of_a_start: set[str]) -> None:
    assert {f"delaytopic_api.documents.{name}" for name in DOCUMENTS_OF_PEOPLE} & of_a_start == set()


def test_a_start_with_bucket_topics_imports_no_client_of_redis(of_a_start: set[str]) -> None:
    assert {"redis", "hiredis", "delaytopic_relay.backlog.redis.backlog"} & of_a_start == set()


def test_models_are_made_when_they_are_used() -> None:
    script = (
        "from delaytopic_api.relay import KafkaClient, RelayStatus; KafkaClient(bootstrap_servers='kafka:9092');"
        "print(KafkaClient.__pydantic_complete__, RelayStatus.__pydantic_complete__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "True False\n"
