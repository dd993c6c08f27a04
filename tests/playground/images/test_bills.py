"""Bills of materials name all that the locks have, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from images.tools.bill import bill_of_materials
from images.tools.catalogue import IMAGE_LIST, Image
from images.tools.jars import locked_jars
from images.tools.locking import lock_file

AUDIT = next(image for image in IMAGE_LIST if image.has_jars)


def bill(image: Image) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(bill_of_materials(image, "7.8.9"))
    return document


@pytest.mark.parametrize("image", IMAGE_LIST, ids=lambda image: image.name)
def test_a_bill_has_the_project_each_pin_of_the_lock_and_each_jar(image: Image) -> None:
    lines = lock_file(image.name).read_text(encoding="utf-8").splitlines()
    pins = [line.removesuffix(" \\").replace("==", "@") for line in lines if "==" in line]
    jars = [f"pkg:maven/{jar.group}/{jar.name}@{jar.version}" for jar in locked_jars()] if image.has_jars else []

    document = bill(image)

    wanted = ["pkg:pypi/delaytopic@7.8.9", *map("pkg:pypi/{}".format, pins), *jars]
    assert [each["purl"] for each in document["components"]] == wanted
    assert document["dependencies"] == [{"ref": image.repository, "dependsOn": wanted}]
    assert sum(len(each.get("hashes", [])) for each in document["components"]) == len(jars) + sum(
        "--hash" in line for line in lines
    )


def test_a_jar_is_named_as_maven_does() -> None:
    jar = locked_jars()[0]

    assert next(each for each in bill(AUDIT)["components"] if each.get("group") == jar.group) == {
        "type": "library",
        "bom-ref": f"pkg:maven/{jar.group}/{jar.name}@{jar.version}",
        "group": jar.group,
        "name": jar.name,
        "version": jar.version,
        "purl": f"pkg:maven/{jar.group}/{jar.name}@{jar.version}",
        "hashes": [{"alg": "SHA-256", "content": jar.digest}],
    }


def test_the_same_locks_give_the_same_document_and_another_version_another_one() -> None:
    assert bill(AUDIT) == bill(AUDIT)
    assert bill(AUDIT)["serialNumber"] != json.loads(bill_of_materials(AUDIT, "7.8.8"))["serialNumber"]
