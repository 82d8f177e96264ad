"""The container reconciler: objects in another policy than their container's are moved."""
