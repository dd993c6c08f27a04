"""Names with rules: topics, globs of topics, Kubernetes objects; each refusal says what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.reserved_topics import RESERVED, WHY, is_reserved


@dataclass(frozen=True)
class Matching:
    """A pydantic rule: the text matches a pattern, and the refusal says in words what that means."""

    pattern: str
    longest: int
    words: str

    def check(self, text: str) -> str:
        """The text itself; raises `InvalidText`."""
        if len(text) > self.longest or re.fullmatch(self.pattern, text, re.ASCII) is None:
            raise InvalidText(f'"{text}" is not {self.words}')
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {"pattern": f"^{self.pattern}$", "maxLength": self.longest}


_A_TOPIC_NAME = "a topic name; use up to 249 letters, digits, dots, underscores, hyphens"


def _check_not_a_folder(name: str) -> str:
    """Kafka keeps a topic's records in a folder called like it."""
    if name in (".", ".."):
        raise InvalidText(f'"{name}" is not {_A_TOPIC_NAME}')
    return name


_REGEX = RESERVED.replace("\\", "\\\\")


def _check_not_reserved(name: str) -> str:
    if is_reserved(name):
        raise InvalidText(f'"{name}" {WHY}')
    return name


def _check_topic(name: str) -> str:
    return _check_not_reserved(_check_not_a_folder(name))


_NOT_RESERVED = Rule(f"!self.matches('^({_REGEX})$')", WHY)
TopicName = Annotated[
    str,
    Matching("[a-zA-Z0-9._-]+", 249, _A_TOPIC_NAME),
    Checked(_check_topic, Rule("!(self in ['.', '..'])", "must not be . or .."), _NOT_RESERVED),
]
TopicGlob = Annotated[
    str,
    Matching(r"[a-zA-Z0-9._*-]+", 249, "a glob of topics; use the characters of topic names, and * for any of them"),
    Checked(_check_not_reserved, _NOT_RESERVED),
]
"""A pattern of topics that records may go to; it never matches a reserved one."""
TopicTemplate = Annotated[
    str,
    Matching(
        r"([a-zA-Z0-9._*-]|\{namespace\})+",
        249,
        "a glob of topics; use the characters of topic names, * for any of them, and {namespace}",
    ),
]
Glob = Annotated[str, Matching(r"[a-zA-Z0-9._/*-]+", 317, "a glob of names; use * for any characters")]
Sha256 = Annotated[str, Matching("[0-9a-f]{64}", 64, "a SHA-256; use 64 hexadecimal digits, such as sha256sum prints")]
ObjectName = Annotated[
    str,
    Matching(
        "[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?",
        40,
        "a name; use up to 40 lower-case letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
"""A name of a DelayTopic: 40 characters, so that the names of what is made for it fit into Kubernetes' 63."""
Namespace = Annotated[
    str,
    Matching(
        "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        63,
        "a namespace; use up to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
ClassName = Annotated[
    str,
    Matching(
        "[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?",
        63,
        "a name; use up to 63 lower-case letters, digits, hyphens and dots, with a letter or digit at both ends",
    ),
]
SecretName = Annotated[
    str,
    Matching(
        "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?",
        253,
        "a Secret's name; use lower-case letters, digits, hyphens and dots",
    ),
]
SecretKey = Annotated[
    str, Matching("[-._a-zA-Z0-9]+", 253, "a key of a Secret; use letters, digits, dots, underscores and hyphens")
]
TopicId = Annotated[
    str, Matching("[a-zA-Z0-9_+/-]{22}", 22, "a topic id; kafka-topics --describe prints it: 22 characters of base64")
]
MOST_PARTITIONS: Final = 10_000
PartitionCount = Annotated[int, Field(strict=True, ge=1, le=MOST_PARTITIONS)]
ReplicationFactor = Annotated[int, Field(strict=True, ge=1, le=32_767)]
ReplicaCount = Annotated[int, Field(strict=True, ge=0, le=1_000)]


def glob_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Tell names that match any of the globs; `*` stands for any number of characters, dots included."""
    alternatives = [".*".join(map(re.escape, glob.split("*"))) for glob in globs]
    pattern = re.compile("|".join(alternatives) or r"(?!)", re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


def topic_matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Tell topics that match any of the globs.

    A reserved topic matches none: what belongs to Kafka, to a backlog or to a gateway is nobody's to give.
    """
    matches = glob_matcher(globs)
    return lambda topic: matches(topic) and not is_reserved(topic)


def covers(outer: Sequence[str], inner: str) -> bool:
    """Tell whether every topic that matches the glob `inner` surely matches one of the globs `outer`.

    Literal text of `outer` never matches a `*`, so a match of the glob as text is one for all its topics.
    """
    return topic_matcher(outer)(inner)
