"""The JSON patch of a finalizer: of this very object, of this very list, and of nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_operator.kube.finalizers import finalizer_patch

OURS, THEIRS = "delaytopic.dev/drain", "example.com/backup"
PATH = "/metadata/finalizers"
SAME_OBJECT = {"op": "test", "path": "/metadata/uid", "value": "u1"}


@pytest.mark.parametrize(
    ("live", "held", "patch"),
    [
        ([OURS], True, []),
        ([THEIRS], False, []),
        (None, False, []),
        (
            None,
            True,
            [SAME_OBJECT, {"op": "test", "path": PATH, "value": None}, {"op": "add", "path": PATH, "value": [OURS]}],
        ),
        ([OURS], False, [SAME_OBJECT, {"op": "test", "path": PATH, "value": [OURS]}, {"op": "remove", "path": PATH}]),
        (
            [THEIRS, OURS],
            False,
            [
                SAME_OBJECT,
                {"op": "test", "path": PATH, "value": [THEIRS, OURS]},
                {"op": "add", "path": PATH, "value": [THEIRS]},
            ],
        ),
    ],
)
def test_a_finalizer_is_edited_in_the_list_that_was_read(
    live: list[str] | None, held: bool, patch: list[dict[str, Any]]
) -> None:
    metadata: dict[str, Any] = {"uid": "u1"} | ({"finalizers": live} if live is not None else {})

    assert finalizer_patch(metadata, OURS, held=held) == patch
