from __future__ import annotations

import ast
import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import delaytopic_api
import delaytopic_api.documents


@pytest.mark.parametrize("face", [delaytopic_api, delaytopic_api.documents], ids=lambda face: face.__name__)
def test_a_face_has_each_of_its_names_from_the_module_that_type_checkers_see(face: ModuleType) -> None:
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(face))) if isinstance(node, ast.ImportFrom)]
    declared = {alias.name: str(node.module) for node in imports for alias in node.names if node.col_offset}

    assert sorted(face.__all__) == sorted(name for name in declared if name != "late")
    assert all(getattr(face, name) is getattr(import_module(declared[name]), name) for name in face.__all__)


def test_a_name_that_a_face_does_not_have_is_refused_as_by_any_module() -> None:
    face: Any = delaytopic_api.documents
    with pytest.raises(AttributeError, match=r"^module 'delaytopic_api.documents' has no attribute 'nonsense'$"):
        face.nonsense  # noqa: B018
