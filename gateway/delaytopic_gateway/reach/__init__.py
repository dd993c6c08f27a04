"""One DelayTopic as commands reach it: by a gateway's REST, or by the gateway's own service in this process."""
