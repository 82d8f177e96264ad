"""The object expirer: deletes objects after their X-Delete-At, and objects that clients queued."""
