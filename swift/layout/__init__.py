"""Changes of a cluster's devices, carried out by the cluster itself: ``swift-layout`` and its controller."""
