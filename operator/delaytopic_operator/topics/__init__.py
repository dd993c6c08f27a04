"""Which topics a DelayTopic needs, and what has to be done to them. Pure."""
