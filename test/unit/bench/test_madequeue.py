"""A queue that is made up as it is listed: the expirer finds every task in it, and each once.

In processes of their own: the module makes the standard library cooperative.
"""

import json
import subprocess
import sys

import pytest

from test.support.peer import make_rings

SCRIPT = """
import json, sys
from swift.bench import madequeue
from swift.gateway.internal_client import InternalClient
madequeue.EACH, madequeue.PAGE = 10, 4
queue = madequeue.MadeQueue(int(sys.argv[1]))
client = InternalClient(queue.handle, "test")
names = [row["name"] for row in client.containers("q")]
print(json.dumps([[name, [row["name"] for row in client.objects("q", name)]] for name in names]))
"""


@pytest.mark.parametrize("count", [0, 1, 4, 9, 10, 11, 27, 40])
def test_every_task_is_listed_once_in_the_order_of_names(count):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count)], capture_output=True, text=True, timeout=60, check=True
    )
    found = json.loads(done.stdout)
    numbers = [int(task.rpartition("/o")[2]) for _container, tasks in found for task in tasks]
    assert numbers == list(range(count))
    assert len(found) == -(-count // 10)
    for container, tasks in found:
        assert tasks and all(task.startswith(f"{int(container):010d}-a/c") for task in tasks)


def test_a_pass_deletes_what_every_task_names(tmp_path):
    make_rings(tmp_path, [("127.0.0.1", 6201, "sda")], replicas=1, names=("container",))
    (tmp_path / "recon0").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "swift.bench.madequeue", "25", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and done.stderr.splitlines()[-1].startswith("25 deletions in ")
