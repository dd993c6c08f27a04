from __future__ import annotations

import pytest

from delaytopic_api import InvalidText
from delaytopic_api.values import RedisAddress, parse_redis_url


@pytest.mark.parametrize(
    ("text", "url", "where"),
    [
        ("redis://cache", RedisAddress("cache", 6379, None, 0, tls=False), "cache:6379"),
        ("redis://cache:7000/2", RedisAddress("cache", 7000, None, 2, tls=False), "cache:7000"),
        (
            "rediss://cache.shop.svc:6380/",
            RedisAddress("cache.shop.svc", 6380, None, 0, tls=True),
            "cache.shop.svc:6380",
        ),
        ("redis://[::1]:6379", RedisAddress("::1", 6379, None, 0, tls=False), "[::1]:6379"),
        ("unix:///run/redis.sock", RedisAddress("", 0, "/run/redis.sock", 0, tls=False), "/run/redis.sock"),
        ("unix:///run/a%20b.sock?db=3", RedisAddress("", 0, "/run/a b.sock", 3, tls=False), "/run/a b.sock"),
    ],
)
def test_a_url_names_a_server(text: str, url: RedisAddress, where: str) -> None:
    parsed = parse_redis_url(text + "\n")

    assert (parsed, parsed.where) == (url, where)


def test_a_url_from_a_file_may_hold_credentials() -> None:
    parsed = parse_redis_url("rediss://relay:p%40ss@cache")

    assert parsed == RedisAddress("cache", 6379, None, 0, tls=True, username="relay", password="p@ss")


def test_credentials_are_in_no_text_of_a_url() -> None:
    parsed = parse_redis_url("redis://relay:hunter2@cache")

    assert "hunter2" not in f"{parsed!r} {parsed} {parsed.where}"


@pytest.mark.parametrize(
    "text",
    [
        "cache:6379",
        "http://cache",
        "redis://",
        "redis://cache:port",
        "redis://cache:99999",
        "redis://cache/first",
        "redis://cache/-1",
        "unix://run/redis.sock",
        "unix://",
        "redis://[::1",
        "redis://cache:0",
        "redis://cache/٣",
        "redis://cache/0/1",
        "redis://cache/9999999999",
        "unix:///run/redis.sock?db=x",
    ],
)
def test_other_urls_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_redis_url(text)

    assert str(caught.value) == ("is not the URL of a Redis; write it like redis://host:6379/0 or rediss://host:6380/0")


@pytest.mark.parametrize(
    "text",
    [
        "redis://cache?db=3",
        "redis://cache:6379/0?db=3",
        "redis://cache?socket_timeout=60",
        "redis://cache?ssl_cert_reqs=none",
        "rediss://cache/0?protocol=3",
        "redis://cache#0",
    ],
)
def test_a_query_is_refused_with_the_place_of_the_database(text: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_redis_url(text)

    assert str(caught.value) == (
        "has a query that nobody reads; write the database behind the host: redis://host:6379/3"
    )


def test_of_a_socket_only_the_database_may_be_asked_for() -> None:
    with pytest.raises(InvalidText, match="has a query that nobody reads; only "):
        parse_redis_url("unix:///run/redis.sock?decode_responses=true")


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("redis://relay:hunter2@cache", True),
        ("redis://:hunter2@cache", True),
        ("unix://:hunter2@/run/x", True),
        ("redis://cache", False),
    ],
)
def test_a_url_tells_whether_it_holds_credentials(text: str, has: bool) -> None:
    assert parse_redis_url(text).has_credentials is has


@pytest.mark.parametrize("text", ["redis://:hunter2/x@cache", "redis//relay:hunter2@cache", "http://:hunter2@cache"])
def test_a_refused_urls_credentials_are_in_no_message_and_no_cause(text: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_redis_url(text)

    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__
