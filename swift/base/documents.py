"""Parsed JSON objects: their readers know, or check, what stands under each name."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
