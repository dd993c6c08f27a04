"""Each document in the data file is refused with exactly the lines beside it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.paths import DATA

from delaytopic_api import InvalidDocument, load_documents

CASES = yaml.safe_load((DATA / "api/refused_delay_topics.yaml").read_text(encoding="utf-8"))
MINIMAL: dict[str, Any] = {
    "apiVersion": "delaytopic.dev/v1beta1",
    "kind": "DelayTopic",
    "metadata": {"name": "reminders", "namespace": "shop"},
    "spec": {"source": {"topic": "reminders.delayed"}, "target": {"topic": "reminders"}},
}


def merged(below: Any, above: Any) -> Any:
    """Mappings merge, everything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {name: merged(below.get(name), value) for name, value in above.items()}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_a_document_with_a_mistake_is_refused_with_the_path_and_what_is_allowed(case: dict[str, Any]) -> None:
    document = merged(MINIMAL, case["with"])
    subject = f"DelayTopic shop/{document['metadata']['name']}"

    with pytest.raises(InvalidDocument) as refused:
        load_documents(yaml.safe_dump(document))

    assert str(refused.value).splitlines() == [f"{subject}: {line}" for line in case["says"]]
