"""A cluster to play with: `python -m playground`, which is `make up`; twice is as good as once."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from images.tools.binaries import helm_program, kubernetes_programs
from images.tools.errors import ImagesError
from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError, print_progress
from playground.cluster.errors import ClusterError
from playground.cluster.kind_cluster import KindCluster
from playground.images.errors import TestImagesError
from playground.kube.awaiting import NotInTime, await_condition
from playground.kube.helm import HelmError
from playground.kube.kubectl import KubectlError
from playground.kube.pods import await_rollout
from playground.next_steps import next_steps
from playground.platform.beginning import begin
from playground.platform.installed_platform import API, CommandLines, InstalledPlatform
from playground.sample import NAME, SENDER, TEAM, sample_team, sender

REASONS = (
    *(ClusterError, ImagesError, TestImagesError, HelmError, KubectlError, NotInTime),
    *(ProgramsMissingError, ProgramsNotBuiltError),
)


@click.command(context_settings={"max_content_width": 120})
def main() -> None:
    """Have a cluster with Kafka, Redis, delaytopic, and a team that sends; then say how to get at it."""
    cluster = KindCluster()
    images = begin(cluster)
    programs = CommandLines(kubernetes_programs().path("kubectl"), helm_program())
    with tempfile.TemporaryDirectory(prefix="delaytopic-up-") as folder:
        fill(InstalledPlatform.of(cluster.kubeconfig, programs, images, Path(folder)))
    click.echo(next_steps(cluster.kubeconfig, [Path(sys.executable).parent, programs.kubectl.parent]))


def fill(platform: InstalledPlatform) -> None:
    """Install what the platform team has, and let the sample team send."""
    print_progress("starting Kafka and Redis ...")
    platform.install_infrastructure()
    print_progress("installing the chart, and a class ...")
    platform.install()
    print_progress(f"applying the DelayTopic {TEAM}/{NAME} ...")
    platform.kubectl.apply(sample_team())
    await_condition(platform.client, f"{API}/namespaces/{TEAM}/delaytopics/{NAME}", "Ready", seconds=120)
    print_progress("starting the pod that sends ...")
    platform.kubectl.apply([sender(platform.images)])
    await_rollout(platform.client, TEAM, SENDER, 1, seconds=120)


if __name__ == "__main__":
    try:
        main()
    except REASONS as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
