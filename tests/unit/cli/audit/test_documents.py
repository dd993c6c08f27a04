"""DelayTopics of folders, such as mounted ConfigMaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_api.errors import InvalidDocument
from delaytopic_cli.audit.documents import audited_topics, full_name
from delaytopic_process.errors import InputError

CLASS = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayClass
metadata: {name: shared}
spec:
  connection: {bootstrapServers: "k:9092"}
  defaults: {precision: 7s}
"""
TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: %s, namespace: shop}
spec: {source: {topic: shop.a}, target: {topic: shop.b}%s}
"""


def folder_of(tmp_path: Path, **files: str) -> str:
    """Write files, in whose names an underscore stands for a dot."""
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return str(tmp_path)


def names(file: str, name: str | None = None, *, may_be_none: bool = False) -> list[str]:
    return [full_name(settings) for settings in audited_topics(file, name, may_be_none=may_be_none)]


def test_the_yaml_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, b_yaml=TOPIC % ("b", ""), c_yml=TOPIC % ("c", ""), a_yaml=TOPIC % ("a", ""))

    assert names(folder) == ["shop/a", "shop/b", "shop/c"]


def test_other_files_folders_and_names_that_begin_with_a_dot_are_left_out(tmp_path: Path) -> None:
    nonsense = "kind: Nonsense"
    folder = folder_of(tmp_path, a_yaml=TOPIC % ("a", ""), _hidden_yaml=nonsense, a_txt=nonsense, a_yaml_bak=nonsense)
    (tmp_path / "folder.yaml").mkdir()

    assert names(folder) == ["shop/a"]


def test_files_of_a_mounted_config_map_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    folder_of(tmp_path / "..2026", a_yaml=TOPIC % ("a", ""))
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")

    assert names(str(tmp_path)) == ["shop/a"]


def test_a_class_holds_for_the_delay_topics_of_all_files(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, z_yaml=CLASS, a_yaml=TOPIC % ("a", ", delayClassName: shared"))

    assert [(each.class_name, str(each.precision)) for each in audited_topics(folder, None)] == [("shared", "7s")]


def test_one_delay_topic_of_a_folder_is_chosen_by_its_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_yaml=TOPIC % ("a", ""), b_yaml=TOPIC % ("b", ""))

    assert names(folder, "shop/b") == ["shop/b"]


def test_errors_of_all_files_name_them(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_yaml="kind: A", b_yaml=TOPIC % ("b", ""), c_yaml="kind: C")

    with pytest.raises(InvalidDocument) as raised:
        names(folder)

    assert str(raised.value).splitlines() == [
        f'{folder}/a.yaml: document 1: kind: "A" is not known here; allowed: DelayTopic, DelayClass, RecurringRecord',
        f'{folder}/c.yaml: document 1: kind: "C" is not known here; allowed: DelayTopic, DelayClass, RecurringRecord',
    ]


def test_a_name_that_is_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_yaml=TOPIC % ("a", ""), b_yaml=TOPIC % ("a", ""))

    with pytest.raises(InvalidDocument) as raised:
        names(folder)

    assert str(raised.value) == (
        f"{folder}/b.yaml: DelayTopic shop/a: metadata.name: is in {folder}/a.yaml, too; each document needs a name of"
        " its own"
    )


def test_a_file_of_a_folder_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")

    with pytest.raises(InputError, match=r"/a\.yaml cannot be read: 'utf-8' codec"):
        names(str(tmp_path))


@pytest.mark.parametrize("files", [{}, {"class_yaml": CLASS}])
def test_a_folder_without_delay_topics_is_an_error_where_there_must_be_some(
    tmp_path: Path, files: dict[str, str]
) -> None:
    folder = folder_of(tmp_path, **files)

    with pytest.raises(InputError) as raised:
        names(folder)

    assert str(raised.value) == f"{folder} holds no DelayTopic ; it holds: none"


@pytest.mark.parametrize("files", [{}, {"class_yaml": CLASS}])
@pytest.mark.parametrize("name", [None, "shop/a"])
def test_a_folder_without_delay_topics_is_none_where_there_need_not_be_any(
    tmp_path: Path, files: dict[str, str], name: str | None
) -> None:
    assert names(folder_of(tmp_path, **files), name, may_be_none=True) == []


def test_a_name_that_none_of_the_delay_topics_has_stays_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_yaml=TOPIC % ("a", ""))

    with pytest.raises(InputError) as raised:
        names(folder, "shop/b", may_be_none=True)

    assert str(raised.value) == f"{folder} holds no DelayTopic shop/b; it holds: shop/a"
