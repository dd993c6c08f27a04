from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_local.session.documents import read_settings
from delaytopic_local.session.rules import check_together
from delaytopic_process.errors import InputError


def refusal(tmp_path: Path, *ways: tuple[str, str]) -> str | None:
    """Return what is said of DelayTopics with these sources and targets, named a, b, c."""
    documents = [
        f"apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec: {{source: {{topic: {source}}}, target: {{topic: {target}}}}}\n"
        for name, (source, target) in zip("abc", ways, strict=False)
    ]
    file = tmp_path / "topics.yaml"
    file.write_text("---\n".join(documents), encoding="utf-8")
    try:
        check_together(read_settings(file))
    except InputError as error:
        return str(error)
    return None


def test_delay_topics_apart_go_together(tmp_path: Path) -> None:
    assert refusal(tmp_path, ("s1", "t1"), ("s2", "t2")) is None


def test_one_behind_the_other_goes(tmp_path: Path) -> None:
    assert refusal(tmp_path, ("s1", "s2x"), ("s2", "t2")) is None


@pytest.mark.parametrize(
    ("ways", "sentence"),
    [
        (
            [("s", "t1"), ("s", "t2")],
            "DelayTopic shop/b: spec.source.topic: s is the source topic of shop/a already; use another",
        ),
        (
            [("s1", "shop.t"), ("s2", "shop_t")],
            "DelayTopic shop/b: spec.target.topic: shop_t differs from shop.t of shop/a in dots and underscores only, "
            "and Kafka takes one of the two; use another",
        ),
        (
            [("s1", "t"), ("s2", "t")],
            "DelayTopic shop/b: spec.target.management: must be Observe for t, which is looked after for shop/a "
            "already; or use another topic",
        ),
    ],
)
def test_what_the_operator_refuses_is_refused(tmp_path: Path, ways: list[tuple[str, str]], sentence: str) -> None:
    assert refusal(tmp_path, *ways) == sentence


def test_records_that_would_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    head = "apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {name: %s, namespace: shop}\n"
    to = "spec: {source: {topic: %s}, target: {topic: %s, management: Observe}}\n"
    file.write_text("---\n".join([head % "a" + to % ("s1", "s2"), head % "b" + to % ("s2", "s1")]), encoding="utf-8")

    with pytest.raises(InputError, match="its records would go round in a circle: by way of shop/a"):
        check_together(read_settings(file))
