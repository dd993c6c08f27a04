"""Lines for the author of a document, made of pydantic's errors: the field's path, and what is allowed there."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from delaytopic_api.errors import BrokenRules, Problem

Location = Sequence[str | int]

_SAYS = {
    "missing": "is required",
    "model_type": "must be a mapping of fields",
    "model_attributes_type": "must be a mapping of fields",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}
_EXPECTS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "datetime_type": "a time such as 2026-11-21T12:00:00Z",
    "datetime_from_date_parsing": "a time such as 2026-11-21T12:00:00Z",
}


def problems_of(error: ValidationError, model: type[BaseModel], subject: str) -> list[Problem]:
    """One problem for each thing to change, in the order of the document's fields."""
    found: list[Problem] = []
    for details in error.errors(include_url=False):
        location = details["loc"]
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, BrokenRules):
            found += (
                Problem(_joined(path_of(location), broken.path), broken.message, subject) for broken in cause.problems
            )
        else:
            found.append(Problem(path_of(location), _message(details, model), subject))
    return found


def path_of(location: Location) -> str:
    """`spec.target.allowedTopics[0]`, or `spec.source.config["min.insync.replicas"]` where a name has dots itself."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier():
            path = _joined(path, part)
        else:
            path += f'["{part}"]'
    return path


def _joined(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest else path or rest


def _message(details: ErrorDetails, model: type[BaseModel]) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind in _SAYS:
        return _SAYS[kind]
    if kind in _EXPECTS:
        return f"must be {_EXPECTS[kind]}, not {_shown(value)}"
    match kind:
        case "extra_forbidden":
            said = _unknown_field(details["loc"], model)
        case "enum" | "literal_error":
            said = _choice(value, _choices(details["loc"], model))
        case "string_type":
            quotes = ' (put it in quotes: "...")' if isinstance(value, bool | int | float) else ""
            said = f"must be text, not {_shown(value)}{quotes}"
        case "greater_than_equal":
            said = f"must be at least {context['ge']}, not {_shown(value)}"
        case "less_than_equal":
            said = f"must be at most {context['le']}, not {_shown(value)}"
        case "too_long" if isinstance(value, list):
            said = f"must have at most {context['max_length']} entries, not {len(value)}"
        case "value_error":
            said = str(context["error"])
        case _:
            said = f"{details['msg']}, not {_shown(value)}"
    return said


def _unknown_field(location: Location, model: type[BaseModel]) -> str:
    parent = _type_at(model, location[:-1])
    known = _field_names(parent) if _is_model(parent) else []
    return f"is not a field{_suggestion(str(location[-1]), known)}"


def _choice(value: object, choices: Sequence[str]) -> str:
    if isinstance(value, str):
        return f"{_shown(value)} is not allowed{_suggestion(value, choices)}"
    return f"must be one of {', '.join(choices)}, not {_shown(value)}"


def _suggestion(given: str, known: Sequence[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    nearest = difflib.get_close_matches(given.lower(), by_lower, n=1, cutoff=0.6)
    if nearest:
        return f"; did you mean {by_lower[nearest[0]]}? Allowed: {', '.join(known)}"
    return f"; allowed: {', '.join(known)}"


def _choices(location: Location, model: type[BaseModel]) -> list[str]:
    annotation = _type_at(model, location)
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return []


def _type_at(model: type[BaseModel], location: Location) -> Any:
    annotation: Any = model
    for part in location:
        if isinstance(part, str) and _is_model(annotation):
            fields = annotation.model_fields.values()
            annotation = next((_bare(field.annotation) for field in fields if field.alias == part), None)
        else:
            annotation = _bare(next(reversed(get_args(annotation)), None))
    return annotation


def _bare(annotation: Any) -> Any:
    """The type without `| None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(inner for inner in get_args(annotation) if inner is not types.NoneType)
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(value: object) -> str:
    """The author's value, as JSON; only its kind where it is a whole structure."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return json.dumps(value, default=str, ensure_ascii=False)
