"""Audits of classes and namespaces: what is seen of one, what is decided, and the reconciliation that does it."""
