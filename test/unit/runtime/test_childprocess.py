"""Programs are run with bounded output and a time limit."""

import os
import sys

import pytest

from swift.runtime import childprocess

pytestmark = pytest.mark.process


def python(code):
    return [sys.executable, "-c", code]


def test_status_and_both_outputs_are_returned():
    done = childprocess.run(
        python("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"),
        timeout_s=60,
    )
    assert done == childprocess.Completed(3, "out\nerr\n")


def test_output_beyond_the_limit_is_dropped():
    size = childprocess.OUTPUT_BYTES_MAX + 1
    done = childprocess.run(python(f"print('x' * {size})"), timeout_s=60)
    assert done.status == 0
    assert len(done.output) == childprocess.OUTPUT_BYTES_MAX


def test_a_program_that_exceeds_its_time_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    code = (
        f"import os, signal, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    )
    with pytest.raises(childprocess.ProcessTimeout, match="killed after 1 s"):
        childprocess.run(python(code), timeout_s=1)
    if pid_file.exists():
        assert not os.path.exists(f"/proc/{pid_file.read_text()}")


def test_a_missing_program_raises_oserror(tmp_path):
    with pytest.raises(OSError):
        childprocess.run([str(tmp_path / "absent")], timeout_s=5)
