"""The gateway on a Kubernetes cluster: callers, their rights and the DelayTopics, as its API server says."""
