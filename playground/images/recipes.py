"""The recipe of each image of the tests, and its ingredients."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.building import Order, build_image, image_fingerprint, wheel_folders
from images.tools.catalogue import Image
from images.tools.docker import Docker
from images.tools.fingerprint import files_fingerprint, fingerprint, tree
from images.tools.go_builds import Report
from playground.cluster.engine import DockerEngine
from playground.images.cached import LABEL, Recipe, save
from playground.images.kafka_files import kafka_fingerprint, stage_kafka
from playground.without_registry.roots import RootImage

HERE: Final = Path(__file__).parent
TRAFFIC: Final = HERE.parent / "traffic"
KAFKA_REFERENCE: Final = "delaytopic-e2e/kafka:4.3"
TRAFFIC_REFERENCE: Final = "delaytopic-e2e/traffic:e2e"


@dataclass(frozen=True, slots=True)
class Base:
    """A base of images: its name, and what decides whether they have to be made anew."""

    reference: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Workshop:
    """The place where images are made. Its methods make nothing: what they return does."""

    engine: DockerEngine
    report: Report

    def root(self, image: RootImage) -> Recipe:
        """One of Debian's packages."""
        digest = image.fingerprint()
        name = image.reference.rpartition("/")[2].partition(":")[0]
        return Recipe(name, image.reference, digest, lambda archive: image.make(archive, (LABEL, digest), self.report))

    def project(self, order: Order, image: Image, base: Base) -> Recipe:
        """One that users get, too: relay, operator or audit."""
        wheels = wheel_folders(order, image, self.report)
        digest = fingerprint(base.fingerprint, image_fingerprint(order, image, wheels))

        def make(archive: Path) -> None:
            self.report(f"building {order.reference(image)} ...")
            build_image(order, image, wheels, Docker(self.engine.environment), {LABEL: digest})
            save(self.engine, order.reference(image), archive)

        return Recipe(f"{image.name}-{order.tag}", order.reference(image), digest, make)

    def traffic(self, relay: Recipe) -> Recipe:
        """The programs that send and read, on top of the relay's image."""
        programs = [path for path in tree(TRAFFIC) if path.suffix == ".py" and not path.name.startswith("test_")]
        digest = fingerprint(relay.fingerprint, files_fingerprint(TRAFFIC, programs), _own_files("traffic"))

        def stage(context: Path) -> None:
            (context / "traffic").mkdir()
            for program in programs:
                (context / "traffic" / program.name).write_bytes(program.read_bytes())

        return self._of_dockerfile("traffic", TRAFFIC_REFERENCE, digest, stage, {"PROJECT": relay.reference})

    def kafka(self, base: Base, relay: Recipe) -> Recipe:
        """A broker, started by the project's launcher out of the relay's image."""
        digest = fingerprint(base.fingerprint, relay.fingerprint, kafka_fingerprint(), _own_files("kafka"))
        arguments = {"BASE": base.reference, "PROJECT": relay.reference}
        return self._of_dockerfile(
            "kafka", KAFKA_REFERENCE, digest, lambda context: stage_kafka(context, self.report), arguments
        )

    def _of_dockerfile(
        self,
        name: str,
        reference: str,
        digest: str,
        stage: Callable[[Path], None],
        arguments: Mapping[str, str],
    ) -> Recipe:
        def make(archive: Path) -> None:
            self.report(f"building {reference} ...")
            with tempfile.TemporaryDirectory(prefix="making-", dir=archive.parent) as folder:
                stage(Path(folder))
                options = {"build-arg": arguments, "label": {LABEL: digest}}
                Docker(self.engine.environment).build(Path(folder), HERE / name / "Dockerfile", reference, options)
            save(self.engine, reference, archive)

        return Recipe(name, reference, digest, make)


def _own_files(name: str) -> str:
    return files_fingerprint(HERE, tree(HERE / name))
