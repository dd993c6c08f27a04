"""Dead letters of the DelayTopics that a gateway serves: read, and sent again."""
