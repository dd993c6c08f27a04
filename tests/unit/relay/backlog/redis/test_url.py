from __future__ import annotations

import pytest

from delaytopic_relay.backlog.redis.url import RedisUrl, parse_redis_url
from delaytopic_relay.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "url", "where"),
    [
        ("redis://cache", RedisUrl("cache", 6379, None, 0, tls=False), "cache:6379"),
        ("redis://cache:7000/2", RedisUrl("cache", 7000, None, 2, tls=False), "cache:7000"),
        ("rediss://cache.shop.svc:6380/", RedisUrl("cache.shop.svc", 6380, None, 0, tls=True), "cache.shop.svc:6380"),
        ("redis://[::1]:6379", RedisUrl("::1", 6379, None, 0, tls=False), "[::1]:6379"),
        ("unix:///run/redis.sock", RedisUrl("", 0, "/run/redis.sock", 0, tls=False), "/run/redis.sock"),
        ("unix:///run/a%20b.sock?db=3", RedisUrl("", 0, "/run/a b.sock", 3, tls=False), "/run/a b.sock"),
    ],
)
def test_a_url_names_a_server(text: str, url: RedisUrl, where: str) -> None:
    parsed = parse_redis_url(text + "\n", secret=False)

    assert (parsed, parsed.where) == (url, where)


def test_a_url_from_a_file_may_hold_credentials() -> None:
    parsed = parse_redis_url("rediss://relay:p%40ss@cache", secret=True)

    assert parsed == RedisUrl("cache", 6379, None, 0, tls=True, username="relay", password="p@ss")


def test_credentials_are_in_no_text_of_a_url() -> None:
    parsed = parse_redis_url("redis://relay:hunter2@cache", secret=True)

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
        "redis://cache?socket_timeout=60",
        "redis://cache?ssl_cert_reqs=none",
        "redis://cache#0",
        "unix://run/redis.sock",
        "unix://",
        "unix:///run/redis.sock?decode_responses=true",
        "redis://[::1",
    ],
)
def test_other_urls_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_redis_url(text, secret=False)

    assert str(caught.value) == (
        f"backend.redis.url: {text!r} is no url of a Redis, allowed is redis://host[:port][/database], "
        "rediss://host[:port][/database] or unix:///path[?db=database]"
    )


@pytest.mark.parametrize("text", ["redis://relay:hunter2@cache", "redis://:hunter2@cache", "unix://:hunter2@/run/x"])
def test_a_url_in_the_configuration_must_not_hold_credentials(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_redis_url(text, secret=False)

    assert str(caught.value) == (
        "backend.redis.url holds credentials: put them into usernameFile and passwordFile, or use urlFile"
    )


@pytest.mark.parametrize("secret", [True, False])
@pytest.mark.parametrize("text", ["redis://:hunter2/x@cache", "redis//relay:hunter2@cache", "http://:hunter2@cache"])
def test_a_refused_urls_credentials_are_in_no_message_and_no_cause(text: str, secret: bool) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_redis_url(text, secret=secret)

    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__
