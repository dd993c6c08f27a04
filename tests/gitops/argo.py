"""Runs a resource customization as Argo CD does: in Lua 5.1, with the object as `obj`."""

from __future__ import annotations

from typing import Any

from lupa.lua51 import LuaRuntime, lua_type  # type: ignore[import-untyped]
from tests.support.paths import ROOT

FOLDER = ROOT / "gitops/argocd/resource_customizations/delaytopic.dev"


def run(script: str, obj: dict[str, Any]) -> Any:
    """Return what the script (a file below the folder of the customizations) returns for the object, as plain data."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = _table(lua, obj)
    return _plain(lua.execute((FOLDER / script).read_text(encoding="utf-8")))


def _table(lua: LuaRuntime, value: Any) -> Any:
    if isinstance(value, dict):
        return lua.table_from({key: _table(lua, each) for key, each in value.items()})
    if isinstance(value, list):
        return lua.table_from([_table(lua, each) for each in value])
    return value


def _plain(value: Any) -> Any:
    if lua_type(value) != "table":
        return value
    keys = list(value.keys())
    if keys and keys == list(range(1, len(keys) + 1)):
        return [_plain(each) for each in value.values()]
    return {key: _plain(each) for key, each in value.items()}
