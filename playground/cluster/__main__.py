"""A kind cluster on the command line: `python -m playground.cluster --help`."""

from __future__ import annotations

import shutil
import sys
import time

import click
from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError, print_progress
from playground.cluster.engine import find_engine, start_engine
from playground.cluster.errors import ClusterError, MachineLacks
from playground.cluster.kind_cluster import DEFAULT_NAME, KindCluster
from playground.cluster.machine import lacks_for_engine, this_machine

_NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Of the cluster.")


@click.group(context_settings={"max_content_width": 120})
def main() -> None:
    """A real Kubernetes cluster of one node (kind) on this machine.

    It runs in the Docker engine that answers. Where none does, root on Debian or Ubuntu gets a private one: docker.io
    is installed, started with everything it needs in one folder of the cache, and gone with the cluster.

    The node's image is kind's published one, or, where that can't be pulled, one that is built here from Debian
    packages and Go modules: twenty minutes once, a minute afterwards. E2E_NODE_IMAGE names another. On ours a
    NetworkPolicy keeps nothing away, and no volumes are made for claims.
    """


@main.command()
@_NAME
def up(name: str) -> None:
    """Have a cluster, and print the path of its kubeconfig."""
    started = time.monotonic()
    cluster = KindCluster(name).start()
    print_progress(f"{name} is up, after {time.monotonic() - started:.0f} s")
    click.echo(cluster.kubeconfig)


@main.command()
@_NAME
@click.option("--keep-engine", is_flag=True, help="Keep the Docker engine, and the images in it.")
def down(name: str, keep_engine: bool) -> None:
    """Delete the cluster, and everything that was started for it.

    After the last cluster, images that were built or loaded from here go, too, and the Docker engine if it is private.
    Programs that were built, and the archive of the node's image, stay in the cache for the next time.
    """
    KindCluster(name).stop(keep_engine=keep_engine)


@main.command()
@_NAME
def status(name: str) -> None:
    """Say what is there; exit code 1 when the cluster is not up."""
    found, cluster = find_engine(), KindCluster(name)
    is_up = cluster.is_up()
    private = " (private)" if found and found.is_private else ""
    click.echo(f"Docker engine: {found.host}{private}" if found else "Docker engine: none")
    click.echo(f"cluster {name}: up, {cluster.kubeconfig}" if is_up else f"cluster {name}: not up")
    sys.exit(0 if is_up else 1)


@main.command()
def check() -> None:
    """Say what this machine lacks for a cluster, in one line; exit code 1 when it lacks something.

    Nothing is started or built.
    """
    if find_engine() is None and (lacking := lacks_for_engine(this_machine())):
        raise MachineLacks(lacking)
    if shutil.which("go") is None:
        raise MachineLacks("kind is built with Go: install Go 1.24 or newer (https://go.dev/dl)")


@main.command()
def engine() -> None:
    """Find or start the Docker engine alone.

    Prints the value of DOCKER_HOST.
    """
    click.echo(start_engine().host)


if __name__ == "__main__":
    try:
        main()
    except (ClusterError, ProgramsMissingError, ProgramsNotBuiltError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
