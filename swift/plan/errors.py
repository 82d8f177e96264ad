"""Errors of the planner; every text is one sentence for an operator."""

from __future__ import annotations

from swift.base.errors import SwiftError


class PlanError(SwiftError):
    """A plan cannot be made from what was given."""
