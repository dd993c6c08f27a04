"""`python -m delaytopic_api.crd [FOLDER]`: write the CustomResourceDefinitions, into crds/ unless told otherwise.

In a checkout the JSON schemas are written, too: into the package, and into the documentation.
"""

from __future__ import annotations

import sys
from pathlib import Path

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.json_schema import schema_texts
from delaytopic_api.crd.kinds import KINDS, Kind
from delaytopic_api.documents.metadata import GROUP
from delaytopic_api.loading import write_yaml

HEADER = "# Generated from the models of delaytopic_api by `make generate`: change those.\n"
CHECKOUT = Path(__file__).parents[2]
SCHEMAS = Path(__file__).parents[1] / "schemas"
PUBLISHED = CHECKOUT.parent / "docs/schemas"


def file_name(kind: Kind) -> str:
    """Such as `delaytopic.dev_delaytopics.yaml`."""
    return f"{GROUP}_{kind.plural}.yaml"


def file_text(kind: Kind) -> str:
    """Return the text of a kind's file."""
    document = custom_resource_definition(kind)
    return HEADER + write_yaml([document])


def main(folder: Path) -> None:
    """Write one file for each kind, and print their names."""
    for kind in KINDS:
        path = folder / file_name(kind)
        path.write_text(file_text(kind), encoding="utf-8")
        print(path)


def write_schemas(*folders: Path) -> None:
    """Write the JSON schemas into these folders, and print the names of the files."""
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name, text in schema_texts().items():
            path = folder / name
            path.write_text(text, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    if not sys.argv[1:]:
        write_schemas(SCHEMAS, PUBLISHED)
    main(Path(sys.argv[1]) if sys.argv[1:] else CHECKOUT)
