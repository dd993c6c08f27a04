"""Callers as requests show them, and the questions to the API server."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from delaytopic_gateway.access.rights import Caller, Right
from delaytopic_gateway.cluster.reviews import (
    Remembered,
    TrustedProxy,
    access_review,
    bearer_token,
    is_allowed,
    reviewed_caller,
)
from delaytopic_gateway.errors import ForbiddenError, UnauthenticatedError
from delaytopic_process.errors import InputError

NAMES = ("X-Forwarded-User", "X-Forwarded-Groups")


def _headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.lower().encode(), value.encode()) for name, value in pairs])


def _proxy() -> TrustedProxy:
    proxy = TrustedProxy.of(*NAMES, ["10.1.2.0/24", "fd00::/64"])
    assert proxy is not None
    return proxy


@pytest.mark.parametrize("value", ["Bearer abc", "bearer abc", "Bearer   abc "])
def test_a_token_is_read_as_the_standard_has_it(value: str) -> None:
    assert bearer_token(_headers(("Authorization", value))) == "abc"


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("Authorization", "Basic abc")],
        [("Authorization", "Bearer ")],
        [("Authorization", "abc")],
        [("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
        [("Authorization", "Bearer " + "a" * 20_000)],
    ],
    ids=["none", "another scheme", "empty", "no scheme", "two", "too long"],
)
def test_anything_else_is_nobody(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(UnauthenticatedError, match="Authorization: Bearer TOKEN"):
        bearer_token(_headers(*pairs))


def test_a_review_names_the_caller_with_all_that_rights_may_depend_on() -> None:
    user = {"username": "ann", "uid": "7", "groups": ["a", "b"], "extra": {"scopes": ["x", "y"]}}

    caller = reviewed_caller({"status": {"authenticated": True, "user": user}})

    assert caller == Caller("ann", ("a", "b"), "7", (("scopes", ("x", "y")),))
    assert access_review(caller, Right.WRITE, "shop", "reminders")["spec"] == {
        "user": "ann",
        "groups": ["a", "b"],
        "uid": "7",
        "extra": {"scopes": ["x", "y"]},
        "resourceAttributes": {
            "group": "delaytopic.dev",
            "resource": "delaytopics",
            "subresource": "records",
            "verb": "update",
            "namespace": "shop",
            "name": "reminders",
        },
    }


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"authenticated": False, "user": {"username": "ann"}},
        {"authenticated": "true", "user": {"username": "ann"}},
        {"authenticated": True, "user": {}},
        {"authenticated": True, "error": "expired", "user": {"username": "ann"}},
    ],
)
def test_a_review_that_does_not_plainly_say_yes_is_a_no(status: object) -> None:
    with pytest.raises(UnauthenticatedError, match="not valid"):
        reviewed_caller({"status": status})


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": False}, False),
        ({"allowed": "yes"}, False),
        (None, False),
    ],
)
def test_a_right_is_there_only_when_the_review_plainly_says_so(status: object, allowed: bool) -> None:
    assert is_allowed({"status": status}) is allowed


@pytest.mark.parametrize("client", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"])
def test_the_proxy_names_user_and_groups(client: str) -> None:
    headers = _headers((NAMES[0], "ann"), (NAMES[1], "shop, billing"), (NAMES[1], "staff"))

    assert _proxy().caller(client, headers) == Caller("ann", ("shop", "billing", "staff", "system:authenticated"))


@pytest.mark.parametrize("client", ["10.1.3.3", "127.0.0.1", "fd00:1::1", "", "unix"])
@pytest.mark.parametrize("name", NAMES)
def test_its_headers_are_refused_from_anywhere_else(client: str, name: str) -> None:
    with pytest.raises(ForbiddenError, match="from the trusted proxy alone"):
        _proxy().caller(client, _headers((name, "ann")))


@pytest.mark.parametrize(
    "pairs",
    [
        [(NAMES[1], "staff")],
        [(NAMES[0], " ")],
        [(NAMES[0], "ann"), (NAMES[0], "bob")],
        [(NAMES[0], "ann"), (NAMES[1], "system:masters")],
        [(NAMES[0], "system:serviceaccount:shop:default")],
        [(NAMES[0], "ann"), (NAMES[1], ",".join(map(str, range(1_001))))],
    ],
    ids=["groups alone", "empty", "two users", "masters", "a ServiceAccount", "too many groups"],
)
def test_a_proxy_that_names_nobody_or_somebody_of_kubernetes_own_is_refused(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(ForbiddenError):
        _proxy().caller("10.1.2.3", _headers(*pairs))


def test_without_its_headers_the_caller_is_asked_for_a_token() -> None:
    assert _proxy().caller("10.1.2.3", _headers(("Authorization", "Bearer a"))) is None
    assert _proxy().caller("9.9.9.9", _headers()) is None


@pytest.mark.parametrize("given", [(NAMES[0], None, []), (None, None, ["10.0.0.0/8"]), (*NAMES, [])])
def test_the_options_of_a_proxy_go_together(given: tuple[str | None, str | None, list[str]]) -> None:
    with pytest.raises(InputError, match="go together"):
        TrustedProxy.of(*given)


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(InputError, match="--trusted-proxy takes a network"):
        TrustedProxy.of(*NAMES, ["10.1.2.3/24"])


def test_answers_hold_for_a_while_and_the_oldest_make_room() -> None:
    known: Remembered[str, int] = Remembered(most=2, for_ms=100)
    known.put("a", 1, 0)
    known.put("b", 2, 10)

    assert [known.get("a", now_ms) for now_ms in (0, 99, 100)] == [1, 1, None]
    known.put("c", 3, 20)
    assert [known.get(name, 20) for name in "abc"] == [None, 2, 3]


def test_a_clock_that_goes_back_makes_nothing_hold_longer() -> None:
    known: Remembered[str, bool] = Remembered(most=2, for_ms=100)
    known.put("a", True, 1_000)

    assert known.get("a", 999) is None
