"""Tests of what `delaytopic status` says of the DelayTopics of a running `delaytopic local`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.support.operator.scenes import NOW_MS, page

from delaytopic_api import RelayStatus
from delaytopic_api.relay import FormerRules
from delaytopic_api.values import Dialect, Ids
from delaytopic_cli.commands import status as module
from delaytopic_cli.commands.status import status

FORMER = FormerRules(dialect=Dialect.NATIVE, max_delay_ms=1_000, ids=Ids.BY_HEADER, last_due_ms=NOW_MS, records=1_200)
TOPIC = SimpleNamespace(name="shop/reminders", source="shop.a", target="shop.b", dead_letter="shop.a.dlq")
LOCAL = SimpleNamespace(name="local", pid=1, bootstrap_servers="b:1", gateway_url="g", relay_urls=["r"], topics=[TOPIC])


def relay(*former: FormerRules) -> RelayStatus:
    of_page = page(5).status
    assert of_page is not None
    [shard] = of_page.shards
    return of_page.model_copy(update={"shards": [shard.model_copy(update={"former_rules": list(former)})]})


@pytest.mark.parametrize(("former", "told"), [((), 0), ((FORMER,), 1)])
def test_it_tells_how_many_records_keep_the_rules_of_before_an_edit(
    monkeypatch: pytest.MonkeyPatch, former: tuple[FormerRules, ...], told: int
) -> None:
    monkeypatch.setattr(module, "running_states", lambda: [LOCAL])
    monkeypatch.setattr(module, "relay_status", lambda _: relay(*former))

    result = CliRunner().invoke(status)

    assert result.exit_code == 0
    assert result.output.count("up to 1,200 records keep the rules of before an edit, the last due ") == told
