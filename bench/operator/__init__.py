"""The cost of the operator by the number of DelayTopics."""
