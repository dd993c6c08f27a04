"""`make bench`: all that delivery costs on this machine, beside a loop that only copies and the well-known design.

    python -m bench [--only CASE]... [--runs 3] [--records N] [--quick] [--into DIRECTORY] [-o table|json|markdown]

Run from the repository's root. Needs nothing but the installed packages: Kafka and Redis come with them.
"""

from __future__ import annotations

from bench.command import command
from bench.selection import SHAKE_OUT, WHOLE, Group

main = command("python -m bench", Group, WHOLE, SHAKE_OUT)

if __name__ == "__main__":
    main()
