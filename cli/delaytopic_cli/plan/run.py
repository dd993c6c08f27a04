"""Edge: one run of `delaytopic plan`, from files to what is shown."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from delaytopic_api.loading import write_yaml
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.plan.cluster import parsed_config, read_cluster
from delaytopic_cli.plan.errors import NoPlan
from delaytopic_cli.plan.files import read_files
from delaytopic_cli.plan.text import text_lines
from delaytopic_operator.offline import EXIT_CODES, ClusterState, OperatorConfig, Outcome, make_plan


def planned(files: Sequence[str], kubectl: Kubectl | None, namespace: str | None, config_file: str | None) -> Outcome:
    """Return the plan for the files; without `kubectl`, there is no cluster to compare with. Raises `ProgramError`."""
    config = parsed_config(_read(config_file), config_file) if config_file is not None else None
    default = kubectl.default_namespace() if kubectl is not None else namespace or "default"
    documents = read_files(files, default)
    now_ms = time.time_ns() // 1_000_000
    if kubectl is None:
        return make_plan(documents, ClusterState(config or OperatorConfig()), now_ms)
    return make_plan(documents, read_cluster(kubectl, documents, config), now_ms)


def shown(outcome: Outcome, output: str, *, objects: bool) -> str:
    """Return the outcome in the form that `-o` asks for."""
    if output == "text":
        return "\n".join(text_lines(outcome, objects=objects))
    document = outcome.to_json(documents=objects)
    if output == "json":
        return json.dumps(document, ensure_ascii=False, indent=2)
    return write_yaml([document]).rstrip()


def exit_code(outcome: Outcome) -> int:
    """Return the exit code, for pipelines."""
    return EXIT_CODES[outcome.judgement]


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NoPlan(f"{file} cannot be read: {error}") from error
