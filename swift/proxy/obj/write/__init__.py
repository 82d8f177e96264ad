"""Writing objects: the nodes that take a body, and how it reaches them."""
