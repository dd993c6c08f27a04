"""The topics that a DelayTopic needs, and the actions on them. Pure."""
