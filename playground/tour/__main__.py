"""`python -m playground.tour`, which is `make tour`: write what the tour's commands print into its page."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from images.tools.binaries import kubernetes_programs
from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError, print_progress
from playground.cluster.errors import ClusterError, NotReady
from playground.cluster.kind_cluster import KindCluster
from playground.kube.kubectl import Kubectl, KubectlError
from playground.tour.page import PageNotUnderstood, recorded
from playground.tour.stage import PAGE, TourFailed, clear, leave, shell

REASONS = (ClusterError, KubectlError, PageNotUnderstood, ProgramsMissingError, ProgramsNotBuiltError, TourFailed)


@click.command(context_settings={"max_content_width": 120})
def main() -> None:
    """Run the commands of docs/tutorial/kubernetes.md on the cluster of `make up`, and record what they print."""
    cluster = KindCluster()
    if not cluster.is_up():
        raise NotReady("the tour needs the cluster of make up: run that first")
    program = kubernetes_programs().path("kubectl")
    with tempfile.TemporaryDirectory(prefix="delaytopic-tour-") as folder:
        kubectl = Kubectl(program, cluster.kubeconfig, Path(folder))
        run = shell(cluster.kubeconfig, [Path(sys.executable).parent, program.parent], Path(folder))
        clear(kubectl)
        page = recorded(PAGE.read_text(encoding="utf-8"), lambda command: run(_shown(command)))
        leave(kubectl)
    PAGE.write_text(page, encoding="utf-8")


def _shown(command: str) -> str:
    print_progress(f"$ {command}")
    return command


if __name__ == "__main__":
    try:
        main()
    except REASONS as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
