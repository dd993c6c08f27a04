"""`delaytopic plan` as a pipeline calls it: exit codes and outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
import yaml
from tests.unit.operator.offline.scenes import delay_class, delay_topic

from delaytopic_cli.plan.command import plan
from delaytopic_cli.plan.errors import NoPlan
from delaytopic_process.errors import ProgramError


def written(folder: Path, *documents: object) -> str:
    file = folder / "topics.yaml"
    file.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return str(file)


def planned(*arguments: str) -> int:
    return int(plan.main(list(arguments), standalone_mode=False))


def test_changes_are_two_and_refusals_three(tmp_path: Path) -> None:
    assert planned("-f", written(tmp_path, delay_class(), delay_topic())) == 2
    assert planned("-f", written(tmp_path, delay_topic())) == 3


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_read_the_same_as_people(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned("-f", written(tmp_path, delay_class(), delay_topic()), "-o", output)

    text = capsys.readouterr().out
    found = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert (found["judgement"], found["delayTopics"][0]["steps"][0]) == (
        "Changes",
        {"action": "AddFinalizer", "object": "delaytopic.dev/drain"},
    )


def test_documents_are_there_only_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned("-f", written(tmp_path, delay_class(), delay_topic()), "-o", "json", "--show-objects")

    (topic,) = json.loads(capsys.readouterr().out)["delayTopics"]
    kinds = [step["document"]["kind"] for step in topic["steps"] if "document" in step]
    assert kinds == [
        "ConfigMap", "ServiceAccount", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Deployment",
    ]  # fmt: skip


def test_the_operators_settings_are_taken_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text("apiVersion: delaytopic.dev/v1beta1\nkind: OperatorConfig\nnamespace: delays\n")

    planned("-f", written(tmp_path, delay_class(), delay_topic()), "--operator-config", str(config))

    assert "+ Deployment delays/reminders-relay-" in capsys.readouterr().out


def test_files_that_cannot_be_read_are_no_plan(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [", encoding="utf-8")

    for name in ("nowhere.yaml", "broken.yaml"):
        with pytest.raises(NoPlan) as failed:
            planned("-f", str(tmp_path / name))
        assert failed.value.exit_code == 1


def test_wrong_usage_is_no_plan_either() -> None:
    with pytest.raises(click.UsageError) as failed:
        planned("--against", "wishes")

    assert failed.value.exit_code == 1


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "delaytopic_cli.plan.run", None)

    with pytest.raises(ProgramError, match=r"install them with: pip install 'delaytopic\[operator\]'") as failed:
        planned("-f", written(tmp_path, delay_topic()))

    assert failed.value.exit_code == 1
