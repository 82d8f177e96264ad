"""Unpacking golden archives on every supported Python (3.11.2 of Debian 12 knows no extraction filters)."""

import tarfile


def unpack(path, folder):
    """Unpack one of our own archives into ``folder``."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
