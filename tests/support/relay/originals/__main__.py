"""Records the corpora anew: `python -m tests.support.relay.originals` runs what the originals read with, here.

Needs Go, a JDK, Maven and Ruby, and fetches circe from Maven Central. Cesium's code is in no registry of packages: its
inputs keep the verdicts that were recorded, by its own classes.
"""

from __future__ import annotations

import platform
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.relay.originals import corpus, inputs

PROGRAMS: Final = Path(__file__).with_name("programs")
_RUBY: Final = "require 'base64'; STDIN.each_line { |line| puts Base64.decode64(line).force_encoding('UTF-8').to_i }"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def _run(command: Sequence[str | Path], lines: Sequence[str], folder: Path | None = None) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.splitlines()


def _asked_of_go(kind: str, asked: Sequence[bytes]) -> list[str]:
    return _run(["go", "run", "."], [f"{kind} {b64encode(each).decode()}" for each in asked], PROGRAMS / "go")


def _asked_of_ruby(asked: Sequence[bytes]) -> list[str]:
    return _run(["ruby", "-e", _RUBY], [b64encode(each).decode() for each in asked])


def _asked_of_java(asked: Sequence[bytes]) -> list[str]:
    with TemporaryDirectory() as folder:
        copy = ["mvn", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        _run([*copy, "-f", PROGRAMS / "java" / "pom.xml"], [])
        path = f"{folder}/*:{folder}"
        _run(["javac", "-cp", path, "-d", folder, PROGRAMS / "java" / "CirceReader.java"], [])
        return _run(["java", "-cp", path, "CirceReader"], [b64encode(each).decode() for each in asked])


def _asked_of_python(text: bytes) -> str:
    """Read as Kaspr does: a Z at the end is an offset, and without one it is UTC, its containers' time zone."""
    try:
        written = text.decode()
        written = written.replace("Z", "+00:00") if written[-1:] == "Z" else written
        instant = datetime.fromisoformat(written)
    except ValueError:
        return corpus.REFUSED
    instant = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return f"{max(0, -((_EPOCH - instant) // _MILLISECOND))}"


def _not_before_1970(verdict: str) -> str:
    """Return a verdict on a time: what is past is due at 0."""
    first, _, rest = verdict.partition(" ")
    return verdict if not first[1:].isdigit() else f"{max(0, int(first))}{' ' * bool(rest)}{rest}"


def _record(name: str, about: str, asked: Sequence[bytes], verdicts: Sequence[str]) -> None:
    corpus.write(name, about, {repr(each): verdict for each, verdict in zip(asked, verdicts, strict=True)})


def main() -> None:
    """Run the originals' readers on all inputs, and write down what they read."""
    go = _run(["go", "version"], [])[0].split()[2]
    java = _run(["java", "--version"], [])[0]
    ruby = _run(["ruby", "--version"], [])[0].split(" (")[0]
    instants, epochs, names, values = inputs.instants(), inputs.epochs(), inputs.names(), inputs.values()
    of_go = [_not_before_1970(verdict) for verdict in _asked_of_go("rfc3339", instants)]
    about = f"kafka-timebridge v1.6.0: time.Parse(time.RFC3339, text) of {go}, in milliseconds counted up."
    _record("timebridge", about, instants, of_go)
    about = (
        f"Kaspr v0.11.7: datetime.fromisoformat of Python {platform.python_version()}, Z as +00:00, "
        "in milliseconds counted up."
    )
    _record("kaspr", about, instants, [_asked_of_python(each) for each in instants])
    about = (
        f"etf1 kafka-message-scheduler v0.0.9: strconv.ParseInt(text, 10, 64) of {go}; below zero it is refused, too."
    )
    _record("scheduler_epoch", about, epochs, _asked_of_go("epoch", epochs))
    about = f"etf1 kafka-message-scheduler v0.0.9: a key of which strings.TrimSpace of {go} leaves something."
    _record("scheduler_name", about, names, _asked_of_go("name", names))
    about = f"Karafka 2.6.0: String#to_i of {ruby}, which reads every text."
    _record("karafka_epoch", about, epochs, _asked_of_ruby(epochs))
    of_java = [_not_before_1970(verdict.replace("- ", "-")) for verdict in _asked_of_java(values)]
    about = f"sky-uk kafka-message-scheduler v1.0.1: circe 0.14.12, java.util.Base64 of {java}."
    _record("scheduler_json", about, values, of_java)
    recorded = {text: verdict.theirs for text, verdict in corpus.read("cesium").items()}
    about = (
        "cesium-kafka v1.1.1: DelayHeaderCodec.parse at the record's timestamp, delay.max PT1H.\n"
        "Form of numbers, timestamp or None, headers."
    )
    corpus.write("cesium", about, {repr(each): recorded[repr(each)] for each in inputs.cesium_cases()})


if __name__ == "__main__":
    main()
