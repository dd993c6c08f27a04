"""Dead letters of the DelayTopics that a gateway serves: read, and sent again, as documents and as pages."""
