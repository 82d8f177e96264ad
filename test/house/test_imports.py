"""A filter is declared without the server: importing the model of CONTRIBUTING.md loads few modules."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

MODEL = "swift.middleware.healthcheck"
MODULES_MAX = 19


def test_the_model_filter_loads_few_modules():
    script = f"import sys, {MODEL}; print(*(m for m in sys.modules if m.split('.')[0] == 'swift'))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert MODEL in loaded and len(loaded) <= MODULES_MAX, loaded
