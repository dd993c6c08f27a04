"""`python -m images.build`: build the images of relay, operator and audit, and print how large they are."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from images.tools.building import Order, build_images
from images.tools.catalogue import DEFAULT_BASE, IMAGE_LIST, SBOM_FILE, Image
from images.tools.docker import Docker
from images.tools.errors import ImagesError
from images.tools.places import ROOT
from images.tools.project_wheel import Project
from images.tools.sizes import size_json, size_table

_NAMES = [image.name for image in IMAGE_LIST]
_ALL = ",".join(_NAMES)


def chosen_images(context: click.Context, parameter: click.Parameter, value: str) -> tuple[Image, ...]:
    """Return those of a comma-separated list, or all."""
    names = [name.strip() for name in value.split(",")] if value else _NAMES
    if unknown := sorted(set(names) - set(_NAMES)):
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(_NAMES)}")
    return tuple(image for image in IMAGE_LIST if image.name in names)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--base", default=DEFAULT_BASE, help="The base image: Debian 12 or newer with Python 3.11.")
@click.option("--tag", default="", help="The tag.", show_default="the project's version")
@click.option(
    "--only", "images", default="", callback=chosen_images, help="Some of them.", show_default=",".join(_NAMES)
)
@click.option("--source", default=ROOT, type=click.Path(path_type=Path), help="The checkout.", show_default="this one")
@click.option("--sbom", type=click.Path(path_type=Path), help="Write each bill of materials to NAME.cdx.json here.")
@click.option("--archive", type=click.Path(path_type=Path), help="Write each image to NAME-TAG.tar here.")
@click.option("--push", "registry", default="", help="Push them to this registry when all are built.")
@click.option("--pure", is_flag=True, help="The relay in Python alone, without its speedups, which are compiled here.")
@click.option("-o", "--output", default="table", type=click.Choice(["table", "json"]), help="How sizes are printed.")
def main(  # noqa: PLR0913  # an option each
    base: str,
    tag: str,
    images: tuple[Image, ...],
    source: Path,
    *,
    sbom: Path | None,
    archive: Path | None,
    registry: str,
    pure: bool,
    output: str,
) -> None:
    """Build the images, with the docker command's engine, from wheels that pip downloads outside of it."""
    docker, order = Docker(), Order(Project(source.resolve()), base, tag, speedups=not pure)
    try:
        sizes = list(build_images(order, images, docker, lambda line: click.echo(line, err=True)))
        for size in sizes:
            if sbom is not None:
                sbom.mkdir(parents=True, exist_ok=True)
                (sbom / f"{size.name}.cdx.json").write_bytes(docker.read_file(size.reference, SBOM_FILE))
            if archive is not None:
                archive.mkdir(parents=True, exist_ok=True)
                docker.save(size.reference, archive / f"{size.name}-{size.reference.rpartition(':')[2]}.tar")
        for size in sizes if registry else ():
            click.echo(f"pushed {docker.push(size.reference, registry)}", err=True)
    except ImagesError as error:
        click.echo(f"images.build: {error}", err=True)
        sys.exit(1)
    click.echo(size_json(sizes) if output == "json" else size_table(sizes))


if __name__ == "__main__":
    main()
