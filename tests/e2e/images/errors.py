"""What can go wrong with the images of the tests."""

from __future__ import annotations


class TestImagesError(Exception):
    """An image can't be made on this machine; the text says what to do."""

    __test__ = False
