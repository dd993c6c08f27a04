"""The commands on records of a DelayTopic of the cluster: those of `delaytopic`, by the cluster's gateway."""

from __future__ import annotations

from typing import Final

from delaytopic_cli.commands.cancel import cancel_command
from delaytopic_cli.commands.dead_letters import dead_letters_group
from delaytopic_cli.commands.jobs import jobs_group
from delaytopic_cli.commands.pending import pending_command
from delaytopic_cli.commands.records import get_command, reschedule_command
from delaytopic_cli.kubectl.gateway import at_gateway, at_gateway_or_relays

_WORDS: Final = ("kubectl delaytopic", "order-reminders")
_WAY: Final = """
The gateway of the cluster answers. Where none is installed, or your kubeconfig's user may not reach it or has no token
to show it, the relays do, through kubectl port-forward: you need get and list on pods and create on pods/portforward
where they run.
"""

pending = pending_command(at_gateway_or_relays, *_WORDS, _WAY)
get = get_command(at_gateway_or_relays, *_WORDS, _WAY)
reschedule = reschedule_command(at_gateway, *_WORDS)
cancel = cancel_command(at_gateway, *_WORDS)
jobs = jobs_group(at_gateway, *_WORDS)
dead_letters = dead_letters_group(at_gateway, *_WORDS)
