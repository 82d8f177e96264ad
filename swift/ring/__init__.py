"""Rings: the map from a path's digest to the devices that hold it, and the builder that draws the map.

``ring.Ring`` is what servers use; ``builder.RingBuilder`` is what the tools use. Neither knows what is
stored on the devices. Formats and rules: spec ring.md.
"""
