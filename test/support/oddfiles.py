"""Things that are no regular files, to be put in the place of one."""

import os
import signal
import socket
from contextlib import contextmanager


def _socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket may be no longer than 108 characters.
        before = os.getcwd()
        os.chdir(os.path.dirname(path))
        try:
            server.bind(os.path.basename(path))
        finally:
            os.chdir(before)


def _link(path):
    with open(f"{os.path.dirname(path)}/target", "wb") as file:
        file.write(b"secret")
    os.symlink("target", path)


def _directory(path):
    os.mkdir(path)
    with open(f"{path}/child", "wb"):
        pass


#: Kind → how to make one at a path.
ODD = {
    "fifo": os.mkfifo,
    "socket": _socket,
    "dangling-link": lambda path: os.symlink("nowhere", path),
    "link": _link,
    "directory": _directory,
    "empty": lambda path: open(path, "wb").close(),
}


def replace(path, kind):
    """Put something odd in the place of a file or directory, which is kept beside it."""
    path = str(path)
    if os.path.lexists(path):
        os.rename(path, f"{path}.was")
    ODD[kind](path)


@contextmanager
def bounded(seconds=20):
    """Fail instead of hanging."""

    def hangs(*_args):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
