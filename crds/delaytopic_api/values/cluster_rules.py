"""Rules that the API server checks by itself, in CEL: what these models refuse and a schema can't say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

KEY = "x-kubernetes-validations"


@dataclass(frozen=True)
class Rule:
    """One rule: `self` is the value, `oldSelf` the one before an update (a rule with it is for updates only)."""

    holds: str
    """The expression that must be true."""
    message: str
    path: str = ""
    """The path of the field that has to change, relative to the value."""
    is_expression: bool = False
    """True if the message is itself CEL."""

    def document(self) -> dict[str, Any]:
        """Return the part of a CustomResourceDefinition."""
        said = {"messageExpression" if self.is_expression else "message": self.message}
        return {"rule": self.holds, **said, **({"fieldPath": f".{self.path}"} if self.path else {})}


class Checked:
    """A pydantic annotation: a check of a value, and what the API server checks in its place."""

    def __init__(self, check: Callable[[T], T], *rules: Rule, **schema: Any) -> None:
        """`schema` are more keywords of the JSON schema, such as maxLength=253."""
        self._check = check
        self._rules = [rule.document() for rule in rules]
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        checked = handler(schema) | self._schema
        rules = [*checked.get(KEY, ()), *self._rules]  # of an annotation inside of this one, too
        return checked | ({KEY: rules} if rules else {})
