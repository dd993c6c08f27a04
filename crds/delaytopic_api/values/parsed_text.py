"""The base of the API's text types: text that is checked when it is made, and stays text."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from delaytopic_api.errors import InvalidText


class ParsedText(str):
    """Text with a meaning, kept as the author wrote it; two texts with the same meaning are still different.

    A subclass sets `schema` and `example`, and parses in `__new__`, where it raises `InvalidText`.
    """

    schema: ClassVar[dict[str, Any]]
    example: ClassVar[str]

    @classmethod
    def of(cls, value: object) -> Self:
        """Return a document's value as this type. Raises `InvalidText`."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise InvalidText(f"must be text such as {cls.example}, not {json.dumps(value, default=str)}")
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        as_text = core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        return core_schema.no_info_plain_validator_function(cls.of, serialization=as_text)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(cls.schema)
