"""`python -m images.lock [NAME...]`: write images/locks/*.txt anew, with the newest distributions that fit."""

from __future__ import annotations

import sys

from images.tools.errors import ImagesError, LockError
from images.tools.locking import lock_file, lock_text, requirements, resolve
from images.tools.places import ROOT


def main(arguments: list[str]) -> int:
    """Write the locks of these names, or all; returns the exit code."""
    wanted = requirements()
    try:
        if unknown := sorted(set(arguments) - set(wanted)):
            raise LockError(f"no such lock: {', '.join(unknown)}; there are {', '.join(wanted)}")
        for name in arguments or wanted:
            origin, asked = wanted[name]
            file = lock_file(name)
            file.write_text(lock_text(origin, resolve(asked)), encoding="utf-8")
            print(file.relative_to(ROOT))
    except ImagesError as error:
        print(f"images.lock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
