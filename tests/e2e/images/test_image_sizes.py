"""Sizes are printed for people as a table and for programs as JSON."""

from __future__ import annotations

import json

from images.tools.sizes import ImageSize, size_json, size_table

SIZES = [
    ImageSize("relay", "delaytopic/relay:0.1.0", 107_400_000, 42_900_000),
    ImageSize("audit", "delaytopic/slo:0.1.0", 890_000_000, 825_500_000),
]


def test_the_table_has_megabytes_of_each_image_to_the_right() -> None:
    assert size_table(SIZES).splitlines() == [
        "IMAGE  REFERENCE                   SIZE  ABOVE BASE",
        "relay  delaytopic/relay:0.1.0  107.4 MB     42.9 MB",
        "audit  delaytopic/slo:0.1.0    890.0 MB    825.5 MB",
    ]


def test_the_document_has_bytes() -> None:
    assert json.loads(size_json(SIZES[:1])) == [
        {
            "name": "relay",
            "reference": "delaytopic/relay:0.1.0",
            "bytes": 107_400_000,
            "bytesAboveBase": 42_900_000,
        }
    ]
