"""`make bench-quick`: of `make bench` what takes a few minutes.

python -m bench.quick [--only CASE]... [--runs 3] [--records N] [--into DIRECTORY] [-o table|json|markdown]
"""

from __future__ import annotations

from bench.command import command
from bench.selection import QUICK, QUICK_SIZES

main = command("python -m bench.quick", QUICK, QUICK_SIZES)

if __name__ == "__main__":
    main()
