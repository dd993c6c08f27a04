"""`python -m charts.tools`: write every generated file of charts/, gitops/, deploy/ and their documentation."""

from __future__ import annotations

from charts.tools.generated import generated_files
from charts.tools.kustomize import kustomize_base
from charts.tools.olm_bundle import olm_bundle
from charts.tools.places import ROOT
from images.tools.binaries import helm_program


def main() -> None:
    """Write what differs, and say which files that were."""
    for files in (generated_files, lambda: kustomize_base(helm_program()), lambda: olm_bundle(helm_program())):
        for path, text in files().items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
