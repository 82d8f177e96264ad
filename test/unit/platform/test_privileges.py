"""What root becomes, and what it gives away; each in a process of its own."""

import os
import pwd

import pytest

from swift.base.errors import ConfigError
from swift.platform.privileges import become_owner, drop_privileges, inherit_owner, make_directories

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = pwd.getpwnam("nobody")


def in_child(work):
    """The result of a call in a child process, or the text of its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            text = f"{os.geteuid()} {os.getegid()} {os.getgroups()}"
        except ConfigError as error:
            text = str(error)
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as file:
        return file.read()


def owned(path, uid):
    path.mkdir()
    os.chown(path, uid, uid)
    return str(path)


@pytest.mark.process
def test_the_owner_of_what_is_there_is_taken(tmp_path):
    paths = [owned(tmp_path / "a", 0), owned(tmp_path / "b", 4321), str(tmp_path / "missing")]
    assert in_child(lambda: become_owner(paths)) == "4321 4321 [4321]"
    assert in_child(lambda: become_owner(paths[:1])).startswith("0 0 ")
    several = [*paths, owned(tmp_path / "c", NOBODY.pw_uid)]
    assert f"{tmp_path}/b to 4321, {tmp_path}/c to nobody" in in_child(lambda: become_owner(several))


@pytest.mark.process
def test_a_user_is_named_or_unknown():
    assert in_child(lambda: drop_privileges("nobody")).startswith(f"{NOBODY.pw_uid} {NOBODY.pw_gid} ")
    assert in_child(lambda: drop_privileges("root")).startswith("0 0 ")
    assert in_child(lambda: drop_privileges("no-such-user")).startswith("unknown user no-such-user")


def test_what_root_makes_belongs_to_the_owner_of_the_directory(tmp_path):
    base = owned(tmp_path / "base", 4321)
    make_directories(f"{base}/one/two")
    make_directories(f"{base}/one/two")
    (tmp_path / "base/one/two/file").touch()
    inherit_owner(f"{base}/one/two/file")
    for path in ("one", "one/two", "one/two/file"):
        assert os.stat(f"{base}/{path}").st_uid == 4321
