"""The machine below us: files, fsync order, xattrs, locks, mounts. The fault seam."""
