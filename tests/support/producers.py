"""The programs of docs/how-to/produce.md, one a language: taken from the page, built or fetched once a machine."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError
from jgo.maven import MavenContext
from tests.support.paths import ROOT

from delaytopic_local.servers.kafka_jars import KAFKA_VERSION, kafka_runtime

PAGE: Final = ROOT / "docs" / "how-to" / "produce.md"
FRANZ_GO: Final = "github.com/twmb/franz-go/pkg/kgo@v1.22.3"
KAFKAJS: Final = "kafkajs@2.2.4"
_SECTION: Final = re.compile(r"^## (.+?)$.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """A producer that takes an action and an id as arguments, and Kafka and topic from its environment."""

    language: str
    command: Sequence[str]
    folder: Path

    def run(self, action: str, identity: str, brokers: str, topic: str) -> None:
        """Do one of `schedule` and `cancel`."""
        environment = {**os.environ, "BROKERS": brokers, "TOPIC": topic}
        done = subprocess.run(
            [*self.command, action, identity],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{self.language}: {done.stdout}{done.stderr}"


def blocks() -> dict[str, str]:
    """Return the first block of each section of the page, by the section's title."""
    return dict(_SECTION.findall(PAGE.read_text(encoding="utf-8")))


def python_programs(folder: Path) -> list[Program]:
    """Return the two in Python."""
    programs = []
    for name, title in (("helper", "Python, with the helper"), ("plain", "Python, by itself")):
        file = folder / f"{name}.py"
        file.write_text(blocks()[title], encoding="utf-8")
        programs.append(Program(f"Python ({name})", [sys.executable, str(file)], folder))
    return programs


def other_programs(*, build: bool = True) -> list[Program]:
    """Return those in Java, Go and JavaScript; without `build`, only what is there already.

    Raises ProgramsMissingError where a language is not on this machine, and ProgramsNotBuiltError.
    """
    return [make(build) for make in (_java, _go, _javascript)]


def console_producer(*, build: bool = True) -> list[str]:
    """Return the command of Kafka's console producer; `kafka-console-producer.sh` starts the same class."""
    tools = _tools_jar(download=build)
    kafka = kafka_runtime()
    return [str(kafka.java), "-cp", f"{kafka.class_path}:{tools}", "org.apache.kafka.tools.ConsoleProducer"]


def _java(build: bool) -> Program:
    def compile_into(folder: Path, source: Path) -> None:
        _run([_program("javac"), "-cp", kafka_runtime().class_path, "-d", str(folder), str(source)], folder)

    folder = _built("java", "Java", "Reminder.java", compile_into, build)
    classes = f"{folder}:{kafka_runtime().class_path}"
    return Program("Java", [_program("java"), "-cp", classes, "Reminder"], folder)


def _go(build: bool) -> Program:
    def compile_into(folder: Path, _: Path) -> None:
        for arguments in (["mod", "init", "reminder"], ["get", FRANZ_GO], ["build", "-o", "reminder", "."]):
            _run([_program("go"), *arguments], folder)

    folder = _built("go", "Go", "main.go", compile_into, build)
    return Program("Go", [str(folder / "reminder")], folder)


def _javascript(build: bool) -> Program:
    def install_into(folder: Path, _: Path) -> None:
        _run([_program("npm"), "install", "--silent", "--no-audit", "--no-fund", KAFKAJS], folder)

    folder = _built("javascript", "JavaScript", "reminder.js", install_into, build)
    return Program("JavaScript", [_program("node"), "reminder.js"], folder)


def _built(name: str, title: str, file: str, make: Callable[[Path, Path], None], build: bool) -> Path:
    """Return the folder of a program as the page has it now."""
    text = blocks()[title]
    folder = _cache() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not (folder / "built").exists():
        if not build:
            raise ProgramsMissingError(f"the producer in {title} is not built yet: make test-nightly does it")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / file).write_text(text, encoding="utf-8")
        make(folder, folder / file)
        (folder / "built").touch()
    return folder


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delaytopic" / "producers"


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ProgramsMissingError(f"{name} is not on the PATH: install it to run the producers of {PAGE.name}")
    return found


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ProgramsNotBuiltError(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")


def _tools_jar(*, download: bool) -> Path:
    file = _cache() / f"kafka-tools-{KAFKA_VERSION}.jar"
    if not file.exists():
        if not download:
            raise ProgramsMissingError("Kafka's tools are not here yet: run make test-nightly, which fetches them")
        artifact = MavenContext().project("org.apache.kafka", "kafka-tools").at_version(KAFKA_VERSION).artifact()
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(artifact.resolve(), file)
    return file
