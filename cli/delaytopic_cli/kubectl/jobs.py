"""`kubectl delaytopic jobs`: cancel, move or release many pending records at once, through the cluster's gateway."""

from __future__ import annotations

from delaytopic_cli.commands.jobs import jobs_group
from delaytopic_cli.kubectl.gateway import at_gateway

jobs = jobs_group(at_gateway, "kubectl delaytopic", "order-reminders")
