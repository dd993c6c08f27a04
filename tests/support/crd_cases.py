"""Objects that are refused or accepted, from data files, and how to offer them to the API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from playground.kube.kube_client import KubeClient, Object
from tests.support.paths import DATA

DELAY_TOPICS = "/apis/delaytopic.dev/v1beta1/namespaces/default/delaytopics"
DELAY_CLASSES = "/apis/delaytopic.dev/v1beta1/delayclasses"
RECURRING_RECORDS = "/apis/delaytopic.dev/v1beta1/namespaces/default/recurringrecords"
_PATHS = {"DelayTopic": DELAY_TOPICS, "DelayClass": DELAY_CLASSES, "RecurringRecord": RECURRING_RECORDS}
SMALLEST: dict[str, Object] = {
    "DelayTopic": {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": "reminders"},
        "spec": {"source": {"topic": "reminders.delayed"}, "target": {"topic": "reminders"}},
    },
    "DelayClass": {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": "standard"},
        "spec": {"connection": {"bootstrapServers": "kafka:9092"}},
    },
    "RecurringRecord": {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "RecurringRecord",
        "metadata": {"name": "report"},
        "spec": {"delayTopic": "reminders", "cron": "0 9 * * *"},
    },
}


def cases(file: str) -> list[dict[str, Any]]:
    """The entries of a data file."""
    # Every process that runs tests reads these while it collects: in C it takes a tenth of the time.
    return list(yaml.load((DATA / file).read_text(encoding="utf-8"), yaml.CSafeLoader))


def documents(path: Path) -> list[Object]:
    """The objects of a manifest."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def document_of(case: dict[str, Any]) -> Object:
    """The smallest object of the case's kind, with what the case says."""
    return dict(merged(SMALLEST[case.get("kind", "DelayTopic")], case["with"]))


def merged(below: Any, above: Any) -> Any:
    """Mappings merge, everything else is replaced; what is null above is not there."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = below | {name: merged(below.get(name), value) for name, value in above.items()}
    return {name: value for name, value in both.items() if not (name in above and above[name] is None)}


def offer(client: KubeClient, document: Object) -> Object:
    """Return what the API server would store; raises RequestRefused. Nothing is stored."""
    path = _PATHS[document["kind"]]
    metadata = {name: value for name, value in document["metadata"].items() if name != "namespace"}
    return client.create(path, {**document, "metadata": metadata}, dryRun="All", fieldValidation="Strict")
