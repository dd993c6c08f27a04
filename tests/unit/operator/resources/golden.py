"""DelayTopics in tests/data/operator, and all that the operator makes of them, to be read by people.

`python -m tests.unit.operator.resources.golden` writes what it makes of them now. Look at the difference before you
commit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.support.operator.routes import Route, route_of_yaml
from tests.support.paths import DATA

from delaytopic_api.loading import validate
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources.identity import Document

FOLDER = DATA / "operator"
GOLDEN = ("class", "inline")
EXAMPLES: dict[str, dict[str, Any]] = {
    "class": {
        "inheritedLabels": ["team"],
        "images": {"pullSecrets": ["registry"]},
        "audit": {"schedule": "H * * * *", "volume": {"persistentVolumeClaim": {"claimName": "audits"}}},
    },
    "inline": {"networkPolicy": "None"},
    "everything": {
        "inheritedAnnotations": ["example.com/*"],
        "audit": {
            "schedule": "H H * * *",
            "ledger": "s3a://audits/ledger",
            "mode": "Kubernetes",
            "driverAccount": "audit-driver",
            "executors": {"resources": {"requests": {"cpu": 2}, "limits": {"memory": "8Gi"}}},
        },
    },
}
"""The operator's configuration, by the name of the file."""


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such, and nothing as a reference to something before it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def example(name: str) -> Route:
    """The DelayTopic of a file."""
    config = validate(OperatorConfig, EXAMPLES[name])
    return route_of_yaml((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), config)


def golden_file(name: str) -> Path:
    """Return where its objects are."""
    return FOLDER / f"{name}.objects.yaml"


def golden_documents(name: str) -> list[Document]:
    """The objects made for it, as they are in the file."""
    return list(yaml.safe_load_all(golden_file(name).read_text(encoding="utf-8")))


def write() -> None:
    """Write all of the files."""
    for name in GOLDEN:
        text = yaml.dump_all(example(name).documents(), Dumper=_Dumper, sort_keys=False, width=140)
        golden_file(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
