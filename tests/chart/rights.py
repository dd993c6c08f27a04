"""The table of rights in the chart, as a set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from charts.tools.places import CHART, text_of
from tests.cluster.access import Access


def table() -> list[dict[str, Any]]:
    """The rows of files/access.yaml."""
    rows: list[dict[str, Any]] = yaml.safe_load(text_of(CHART / "files/access.yaml"))
    return rows


def documented(scopes: Iterable[str]) -> set[Access]:
    """What the table gives where these scopes hold."""
    wanted = set(scopes)
    return {
        Access(verb, row["apiGroup"], resource, name)
        for row in table()
        if row["scope"] in wanted
        for resource in row["resources"]
        for verb in row["verbs"]
        for name in row.get("names", [""])
    }
