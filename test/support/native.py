"""The extension ``swift/platform/native.c`` compiled for tests."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

import swift

SOURCE = Path(swift.__file__).parent / "platform/native.c"


@functools.cache
def library(*options):
    """Return the path of a library; skip the test where it cannot be compiled."""
    compiler = shutil.which("cc")
    headers = sysconfig.get_path("include")
    if compiler is None or not (Path(headers) / "Python.h").exists():
        pytest.skip("there is no C compiler, or no headers of Python")
    path = Path(tempfile.mkdtemp(prefix="swift-native-")) / "native.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    subprocess.run([compiler, *flags, *options, str(SOURCE), "-o", str(path)], check=True)
    return path


@functools.cache
def faulty_native():
    """Return the module whose system calls can fail: ``fault`` of the source says how."""
    spec = importlib.util.spec_from_file_location("native", library("-DSWIFT_FAULTS"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
