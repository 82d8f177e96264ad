"""The object expirer: what has passed its X-Delete-At is deleted, and so is what clients left to it."""
