"""The errors of the tests' images."""

from __future__ import annotations


class TestImagesError(Exception):
    """An image can't be made on this machine; the text says what to do."""

    __test__ = False
