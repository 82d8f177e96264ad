"""What the planner refuses; every text is one sentence fit for an operator."""

from __future__ import annotations

from swift.base.errors import SwiftError


class PlanError(SwiftError):
    """A plan cannot be made from what was given."""
