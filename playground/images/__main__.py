"""`python -m playground.images [--previous COMMIT]`: make all images of the tests, and print what they are."""

from __future__ import annotations

import sys

import click
from images.tools.docker import Docker
from images.tools.errors import ImagesError
from images.tools.sizes import ImageSize, size_json, size_table
from playground.cluster.engine import start_engine
from playground.cluster.errors import ClusterError
from playground.images.build import base_image, build_all, build_previous
from playground.images.errors import TestImagesError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--previous", help="Also relay and operator of this commit, as :previous.")
@click.option("-o", "--output", default="table", type=click.Choice(["table", "json"]), help="How they are printed.")
def main(previous: str | None, output: str) -> None:
    """Make all images of the tests, in the engine that is found or started, and print their names and sizes."""
    try:
        engine = start_engine()
        references = build_all(engine)
        if previous:
            old = build_previous(engine, previous)
            references |= {f"{name} (previous)": reference for name, reference in old.items()}
        docker, base = Docker(engine.environment), base_image(engine).reference
        base_bytes = docker.size(base) or 0
        measured = {name: (reference, docker.size(reference) or 0) for name, reference in references.items()}
    except (ClusterError, ImagesError, TestImagesError) as error:
        click.echo(f"playground.images: {error}", err=True)
        sys.exit(1)
    sizes = [ImageSize("base", base, base_bytes, 0)]
    for name, (reference, size) in measured.items():
        sizes.append(ImageSize(name, reference, size, size if name == "redis" else size - base_bytes))
    click.echo(size_json(sizes) if output == "json" else size_table(sizes))


if __name__ == "__main__":
    main()
