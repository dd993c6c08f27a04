"""The odd inputs of each corpus: written by hand, and slips of these that a seed draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from random import Random
from typing import Final

from tests.support.relay.native_records import TIMESTAMP_MS, Header

_SLIPS: Final = '0123456789-+:.,TZtzW /_eE"{}[]é\ufeff\0\n'

INSTANTS: Final = """
2026-11-21T14:01:26Z|2026-11-21T14:01:26z|2026-11-21t14:01:26Z|2026-11-21 14:01:26Z|2026-11-21 14:01:26
2026-11-21T14:01Z|2026-11-21T14Z|2026-11-21T14|2026-11-21Z|2026-11-21|20261121|20261121T140126|20261121T140126Z
20261121T1401|2026-W47-6|2026-W47|2026W476|2026W47|2026W476T1401Z|2026-W47-6T14:01|2026-W53-7|2020-W53-7|2026-W00-1
2026-W01-8|2026-325|2026325|2026-11|2026|2026-11-21T4:01:26Z|2026-11-21T14:1:26Z|2026-11-21T14:01:6Z
2026-11-21T14:01:26.5Z|2026-11-21T14:01:26,5Z|2026-11-21T14:01:26.Z|2026-11-21T14:01:26.000000001Z
2026-11-21T14:01:26.1234567891Z|2026-11-21T14:01:26.0000000001Z|2026-11-21T14:01:26.2700000000Z
2026-11-21T14:01:26.12345678901234567890Z|2026-11-21T14:01.5Z|2026-11-21T14.5Z|2026-11-21T140126.5Z
2026-11-21T14:01:26+01:00|2026-11-21T14:01:26-01:00|2026-11-21T14:01:26+0100|2026-11-21T14:01:26+01
2026-11-21T14:01:26+1:00|2026-11-21T14:01:26+01:30:15|2026-11-21T14:01:26+013015|2026-11-21T14:01:26-00:00
2026-11-21T14:01:26+23:59|2026-11-21T14:01:26+24:00|2026-11-21T14:01:26+24:60|2026-11-21T14:01:26+25:00
2026-11-21T14:01:26+00:60|2026-11-21T14:01:26+00:61|2026-11-21T14:01:26+00:99|2026-11-21 14:01:26 +00:00
2026-11-21 14:01:26 +0100|2026-11-21 14:01:26 Z|2026-11-21 14:01:26 UTC|2026-11-21T14:01:26UTC
2026-11-21T14:01:26[UTC]|2026-11-21T14:01:26ZZ|2026-11-21T14:01:26+01:00Z|2026-11-21T14:01:60Z|2016-12-31T23:59:60Z
2026-11-21T24:00:00Z|2026-11-21T23:59:59Z|2026-11-21T14:60:00Z|2026-02-29T00:00:00Z|2024-02-29T00:00:00Z
2026-00-01T00:00:00Z|2026-13-01T00:00:00Z|2026-11-00T00:00:00Z|2026-11-31T00:00:00Z|0000-01-01T00:00:00Z
0000-02-29T00:00:00Z|0001-01-01T00:00:00Z|0001-01-01T00:00:00+23:00|9999-12-31T23:59:59Z|9999-12-31T23:59:59-23:59
10000-01-01T00:00:00Z|+2026-11-21T14:01:26Z|-2026-11-21T14:01:26Z|26-11-21T14:01:26Z|1969-12-31T23:59:59.999Z
1970-01-01T00:00:00Z|1795269686|1795269686000|Sat, 21 Nov 2026 14:01:26 GMT|11/21/2026 14:01:26|21.11.2026|tomorrow
T14:01:26Z|14:01:26Z|2026-11-21T|2026-11-21TZ|2026-11-21T14:01:26|2026/11/21T14:01:26Z|2026-11-21_14:01:26Z
2026-11-21T14-01-26Z|NaN|Infinity|null|Z
"""
EPOCHS: Final = """
0|1|1795269686|+1795269686|-1795269686|-1|-0|+0|00|0001795269686|00000000000000001795269686|1795269686000|1795269686.0
1795269686.5|1.795269686e9|1e3|0x10|0b1|0o7|1_795_269_686|1,795|++1|+-1|--1|+|-| 1|1 |1795269686\t|1795269686s
9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|18446744073709551615|99999999999999999999
9223372036854775|9223372036854776|9999999999999999|10000000000000000|soon|now|NaN|Infinity|inf|null|true|1L|１|٥|"1"
2026-11-21T14:01:26Z|0 |+ 1|1-|1+1|abc1|1abc|0000|+0000|-0000|+00001|2147483647|2147483648|4294967296
"""
NAMES: Final = (
    "a",
    " ",
    "\t\n\v\f\r ",
    "\x85",
    "\xa0",
    "\u2003",
    "\u3000 \u1680",
    "\u200b",
    "\ufeff",
    "\x1c",
    "\x00",
    " a ",
)
NUMBERS: Final = """
1795269605000 1795269605000.0 1795269605000.5 1.795269605e12 1e3 1E3 1e+3 1e-3 1000e-3 10e-1 -1 -0 -0.0 0 0.0 00 01 +1
1. .5 .5e1 1e 1e400 -1e400 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
9.223372036854775807e18 92233720368547758070e-1 1e18 1e19 0e99999999999999999999 1e99999999999999999999
1e-99999999999999999999 0.0e5 1_000 0x10 NaN Infinity -Infinity null true {} [] [1]
"""
TEXTS: Final = ("", " 1", "1 ", "\\u0031", "１", "1L", "1d", "1,0", "--1", "1e1.5", "1\\n")
BASE64: Final = """
YQ YQ== YQ= Y Y=== YR== YR YW YWI YWI= YWJj YWJjZA YWJjZA== YQ==YQ== = == ==== YQ==\\n Y\\nQ== -_8= +/8= -_8 YQ===
YQ==x é \\u0059Q== YQ\\u003d\\u003d Q== /w== //8 //// AAAAA AAAAAA AAAAAAA AAAAAAAA YWI== YWJj=
"""
USUAL: Final = '{"time":1795269605000,"topic":"target","key":"YQ==","value":"dg==","headers":{"a":"YQ=="}}'


def slips(texts: Sequence[str], seed: int) -> Iterator[str]:
    """Yield texts with up to three characters that are another, too many or missing, without an end."""
    random = Random(seed)
    while True:
        characters = [*random.choice(texts)]
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            place, kind = random.randrange(len(characters) + 1), random.randrange(3)
            characters[place : place + (kind > 0)] = random.choice(_SLIPS) if kind < 2 else ""
        yield "".join(characters)


def instants() -> list[bytes]:
    """Return instants as people and programs write them, and slips of them."""
    written = [text for line in INSTANTS.strip().splitlines() for text in line.split("|")]
    return _bytes([*written, *islice(slips(written, seed=1), 300)], b"2026-11-21T14:01:26\xffZ", b"\xff")


def epochs() -> list[bytes]:
    """Return seconds, likewise."""
    written = [text for line in EPOCHS.strip("\n").splitlines() for text in line.split("|")]
    return _bytes([*written, *islice(slips(written, seed=2), 200)], b"1\xff", b"\xef\xbb\xbf1")


def names() -> list[bytes]:
    """Return keys that may be blank."""
    return _bytes(NAMES, b"\xff", b"\xa0", b" \xff")


def values() -> list[bytes]:
    """Return values of sky-uk's JSON."""
    found = [USUAL, *(_json(time=number) for number in NUMBERS.split())]
    found += [_json(time=f'"{text}"') for text in (*NUMBERS.split(), *TEXTS)]
    for text in (*BASE64.split(), "", " ", "YQ== ", " YQ==", "Y Q=="):
        found += [_json(key=f'"{text}"'), _json(value=f'"{text}"'), _json(headers=f'{{"a":"{text}"}}')]
    for field in ("time", "topic", "key", "value", "headers"):
        found += [
            _json(**{field: text}) for text in ("null", "1", "true", "[]", "{}", '""', '"x"', '["YQ=="]', "1.5", "")
        ]
    found += [_json(headers=f"{{{text}}}") for text in ('"a":null', '"a":1', '"":"YQ=="', '"a":"YQ==","a":"Yg=="')]
    found += [_json(headers=f'{{"{text}":"YQ=="}}') for text in ("\\ud800", "\\u0000", "é")]
    found += [_json(topic=f'"{text}"') for text in ("\\ud800", "a\\/b", "a\tb", "a\\qb", "no topic", "\u2028")]
    found += [_json(more=text) for text in ("1", '"\\ud800"', '"\t"', "NaN", "01", "1e999", '{"a":[{}]}')]
    found += [
        "",
        " ",
        "null",
        "[]",
        "1",
        '"x"',
        "{}",
        "{,}",
        "\ufeff" + USUAL,
        USUAL + " ",
        " \t\r\n" + USUAL,
        USUAL + "x",
    ]
    found += [
        USUAL + USUAL,
        USUAL[:-1] + ",}",
        USUAL.replace('"', "'"),
        USUAL.replace('"time"', "time"),
        "/**/" + USUAL,
    ]
    found += ["\v" + USUAL, "\xa0" + USUAL, USUAL + "\0", USUAL.replace(":", " : "), USUAL.replace('"time"', '"Time"')]
    found += [USUAL.replace('"topic"', '"time":"2","topic"'), USUAL.replace('"key"', '"k\\u0065y"')]
    odd = [
        USUAL.encode().replace(b'"a"', b'"%b"' % name) for name in (b"\xff", b"\xe2\x82", b"\xc0\x80", b"\xed\xa0\x80")
    ]
    odd += [USUAL.encode().replace(b"YQ==", b"Y\xff=="), USUAL.encode("utf-16"), USUAL.encode() + b"\xff"]
    return _bytes([*found, *islice(slips(found[:200], seed=3), 300)], *odd)


def cesium_cases() -> list[tuple[str, int | None, list[Header]]]:
    """Return forms of numbers, timestamps and headers of cesium-kafka."""
    at, after = "cesium-deliver-at", "cesium-delay-ms"
    texts = b"0|5|-5|+5| 5|5 |5\n||1.5|1e3|0x10|00000005|3600000|3600001|soon|5L|12345678|9223372036854775807".split(
        b"|"
    )
    texts += [b"9223372036854775808", b"0" * 19, b"0" * 20, b"1" * 19, b"9" * 19, b"\xff", b"\xef\xbb\xbf5", b"5\0"]
    texts += [
        "５".encode(),
        "٥".encode(),
        *(b"%d" % (TIMESTAMP_MS + ms) for ms in (-5, 0, 5_000, 3_600_000, 3_600_001)),
    ]
    texts += [_long(number) for number in (5, -5, TIMESTAMP_MS + 5_000, TIMESTAMP_MS, (1 << 63) - 1, -(1 << 63))]
    texts += [b"\0" * 7, b"\0" * 9]
    headers: list[list[Header]] = [[], [("Cesium-Deliver-At", b"5")], [(at, None)], [(after, None)]]
    headers += [[(name, text)] for name in (at, after) for text in texts]
    pair = (b"5000", b"soon", None, b"%d" % (TIMESTAMP_MS + 9_000), _long(TIMESTAMP_MS + 1_000))
    names = ((at, after), (after, at), (after, after), (at, at))
    headers += [[(one, a), (other, b)] for one, other in names for a, b in product(pair, repeat=2)]
    timestamps = (TIMESTAMP_MS, None)
    return [(form, at_ms, each) for form in ("Decimal", "Binary") for at_ms in timestamps for each in headers]


def _long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def _json(**changes: str) -> str:
    fields = {
        "time": "1795269605000",
        "topic": '"target"',
        "key": '"YQ=="',
        "value": '"dg=="',
        "headers": '{"a":"YQ=="}',
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in (fields | changes).items() if text) + "}"


def _bytes(texts: Sequence[str], *more: bytes) -> list[bytes]:
    return [*dict.fromkeys([*(text.encode("utf-8", "surrogatepass") for text in texts), *more])]
