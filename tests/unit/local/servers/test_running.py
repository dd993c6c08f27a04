from __future__ import annotations

import socket
from pathlib import Path

from delaytopic_local.servers.running import kept_port


def test_the_same_data_has_the_same_port_unless_somebody_else_has_it_now(tmp_path: Path) -> None:
    first = kept_port(tmp_path, "kafka")

    assert (kept_port(tmp_path, "kafka"), kept_port(tmp_path, "redis") != first) == (first, True)
    with socket.create_server(("127.0.0.1", first)):
        assert kept_port(tmp_path, "kafka") != first


def test_a_file_that_holds_no_port_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "kafka.port").write_text("soon", encoding="utf-8")

    assert kept_port(tmp_path, "kafka") > 0
