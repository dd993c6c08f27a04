"""The rules that a Docker engine adds to the packet filter, and a way to take exactly these away again.

A table that was not there before stays as an empty one, which iptables has no word to delete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# By a name, or because it is for a container that calls itself by its published port.
_OF_DOCKER = re.compile(
    r"\bDOCKER\b|\bDOCKER-|\bdocker0\b|\bbr-[0-9a-f]{12}\b|^POSTROUTING -s (\S+) -d \1 .* -j MASQUERADE$"
)


@dataclass(slots=True)
class Table:
    """One table of `iptables-save`: chains with their policies (`-`: a chain of one's own), and rules as text."""

    policies: dict[str, str] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)


def tables(saved: str) -> dict[str, Table]:
    """The output of iptables-save as data."""
    found: dict[str, Table] = {}
    for line in saved.splitlines():
        if line.startswith("*"):
            table = found.setdefault(line[1:], Table())
        elif line.startswith(":"):
            chain, policy, *_ = line[1:].split()
            table.policies[chain] = policy
        elif line.startswith("-A "):
            table.rules.append(line[3:])
    return found


def undoing(before: str, after: str) -> str:
    """Input for `iptables-restore --noflush` that takes away what Docker added since `before`; empty: nothing to do."""
    known = tables(before)
    lines: list[str] = []
    for name, table in tables(after).items():
        changes = _changes(known.get(name, Table()), table)
        lines += [f"*{name}", *changes, "COMMIT"] if changes else []
    return "".join(f"{line}\n" for line in lines)


def _changes(before: Table, after: Table) -> list[str]:
    chains = [chain for chain in after.policies if chain not in before.policies and _OF_DOCKER.search(chain)]
    new = [rule for rule in after.rules if rule not in before.rules]
    rules = [rule for rule in new if rule.split()[0] not in chains and _OF_DOCKER.search(rule)]
    policies = [
        f"-P {chain} {before.policies.get(chain, 'ACCEPT')}"
        for chain, policy in after.policies.items()
        if policy != "-" and policy != before.policies.get(chain, "ACCEPT")
    ]
    deleted = [f"-D {rule}" for rule in rules]
    return [*deleted, *(f"-F {chain}" for chain in chains), *(f"-X {chain}" for chain in chains), *policies]
