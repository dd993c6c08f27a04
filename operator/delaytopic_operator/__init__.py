"""The operator: DelayTopics and DelayClasses in a cluster, and the topics, relays and scaling that follow from them."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("delaytopic")
