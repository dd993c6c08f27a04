"""The texts under the fields of models, read from their source. Only schemas and pages need them.

With pydantic's own `use_attribute_docstrings` each process reads and parses the source of all models when it starts,
which is a fifth of what the imports of a relay take.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, get_args

from delaytopic_api.documents.model import Model

M = TypeVar("M", bound=Model)


def models_in(annotation: Any) -> Iterator[type[Model]]:
    """Yield the models in a type, those in the fields of a model before it."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def described(model: type[M]) -> type[M]:
    """Return the model, whose fields, and those of all models in it, have the texts under them as descriptions."""
    for each in dict.fromkeys(models_in(model)):
        _describe(each)
    return model


@cache
def _describe(model: type[Model]) -> None:
    for name, field in model.model_fields.items():
        field.description = field.description or _text_under(model, name)
    model.model_rebuild(force=True)


def _text_under(model: type[Model], name: str) -> str | None:
    """Return the text under an attribute in the class that declares it last."""
    texts = (_texts_of(base.__module__).get(f"{base.__qualname__}.{name}") for base in model.__mro__)
    return next((text for text in texts if text), None)


@cache
def _texts_of(module: str) -> Mapping[str, str]:
    """Return the texts under all attributes of a module's classes, by class and attribute."""
    source = inspect.getsource(sys.modules[module])
    return {
        f"{each.name}.{attribute.target.id}": inspect.cleandoc(text.value.value)
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef)
        for attribute, text in pairwise(each.body)
        if isinstance(attribute, ast.AnnAssign) and isinstance(attribute.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }
