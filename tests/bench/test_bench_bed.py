from __future__ import annotations

from pathlib import Path

import pytest
from bench.bed import in_memory


@pytest.mark.parametrize(
    ("name", "room_bytes", "found"),
    [
        pytest.param("shm", 1, True, id="there is room"),
        pytest.param("shm", 1 << 60, False, id="there is too little"),
        pytest.param("elsewhere", 1, False, id="there is none"),
    ],
)
def test_data_goes_into_memory_where_there_is_room(tmp_path: Path, name: str, room_bytes: int, *, found: bool) -> None:
    (tmp_path / "shm").mkdir()

    assert in_memory(tmp_path / name, room_bytes) == (tmp_path / name if found else None)
