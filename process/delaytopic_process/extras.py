"""Packages that are not installed, named with the command that installs them."""

from __future__ import annotations


def missing_package(error: ModuleNotFoundError, extra: str) -> str:
    """Return one line for an import that failed; `extra` is the extra of `delaytopic` that brings the package.

    Raises the error again when it is a module of our own: that is no missing package, but a broken one.
    """
    package = (error.name or "").partition(".")[0]
    if not package or package.startswith("delaytopic"):
        raise error
    return f"the Python package {package} is not installed; install it with: pip install 'delaytopic[{extra}]'"
