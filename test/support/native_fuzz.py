"""Call the extension with random arguments: native_fuzz.py LIBRARY FOLDER CALLS."""

from __future__ import annotations

import importlib.util
import os
import random
import resource
import sys


def main(path: str, folder: str, calls: int) -> None:
    """Make random calls; the sanitizer ends the process at the first bad access."""
    spec = importlib.util.spec_from_file_location("native", path)
    assert spec is not None and spec.loader is not None
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    chooser = random.Random(1)
    os.chdir(folder)
    os.makedirs("a/b/c")
    names = [
        "a",
        "a/b",
        "a/b/c",
        "a/b/d",
        "x/y",
        "",
        ".",
        "/",
        "//",
        "a" * 300,
        "é",
        "\udcff",
        "a\0b",
        "a/" * 3000,
    ]

    def value(depth: int = 0) -> object:
        kinds = [
            lambda: chooser.choice(names),
            lambda: f"{folder}/{chooser.choice(names)}",
            lambda: chooser.randbytes(chooser.choice([0, 1, 100, 70_000])),
            lambda: bytearray(chooser.randbytes(50)),
            lambda: chooser.choice([-1, 0, 3, 50, 1 << 31, 1 << 63, 1 << 70, -(1 << 63)]),
            lambda: chooser.choice([None, True, 1.5, object()]),
        ]
        if depth < 2:
            more = [value(depth + 1) for _ in range(chooser.choice([0, 1, 2, 2, 17]))]
            kinds += [lambda: more, lambda: tuple(more), lambda: tuple(("user.a", b"x") for _ in more)]
        return chooser.choice(kinds)()

    def path_value() -> object:
        return f"{folder}/{chooser.choice(names)}" if chooser.random() < 0.8 else value()

    data, fd = lambda: chooser.choice([b"", b"abc\n", value()]), lambda: chooser.choice([-1, 999, value()])
    attributes = lambda: chooser.choice([(), (("user.a", b"x"),) * chooser.choice([1, 16, 17]), value()])  # noqa: E731
    shapes = {
        "hold": (
            path_value,
            lambda: chooser.choice([None, folder, value()]),
            lambda: chooser.choice([[], value()]),
        ),
        "look": (
            path_value,
            lambda: chooser.choice([True, False, value()]),
            lambda: chooser.choice([0, 4096, value()]),
        ),
        "create": (path_value, data, attributes),
        "publish": (path_value, path_value, data, fd, lambda: chooser.choice(names), fd),
        "sync": (
            lambda: chooser.choice([-1, 999]),
            lambda: chooser.choice([(), (folder,), (folder,) * 17, value()]),
        ),
    }
    for number in range(calls):
        if number % 50 == 0:
            for each in ("1.data", "2.data")[: chooser.randrange(3)]:
                file = f"a/b/c/{each}"
                with open(file, "wb") as opened:
                    opened.write(chooser.randbytes(chooser.choice([0, 10, 5000])))
                for name, size in (("metadata", chooser.choice([0, 10, 3000])), ("metadata_checksum", 32)):
                    os.setxattr(file, f"user.swift.{name}", chooser.randbytes(size))
        native.fault(
            chooser.choice([-1, chooser.randrange(15)]),
            chooser.choice([5, 28, 24]),
            chooser.random() < 0.3,
            2,
        )
        name = chooser.choice(list(shapes))
        arguments = [make() for make in shapes[name]][: chooser.choice([6, 6, 6, 6, 1, 2])]
        try:
            getattr(native, name)(*arguments)
        except (TypeError, ValueError, OverflowError, OSError, BufferError):
            pass
        if number % 20 == 0:
            os.closerange(3, 256)
            for each in os.listdir("a/b/c"):
                os.unlink(f"a/b/c/{each}")
    print(f"{calls} calls")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
