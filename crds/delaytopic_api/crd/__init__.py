"""The CustomResourceDefinitions of DelayTopic and DelayClass, generated from their models.

`python -m delaytopic_api.crd` writes them into the folder crds/. Pure otherwise.
"""

from __future__ import annotations

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.kinds import KINDS

__all__ = ["KINDS", "custom_resource_definition"]
