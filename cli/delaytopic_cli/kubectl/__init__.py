"""`kubectl delaytopic`: DelayTopics of a cluster for the people who use them."""
