"""The way to hosts: any command that runs sh there, whose errors are one line without secrets."""

import dataclasses
import grp
import os
import pwd

import pytest

from swift.operations.deploy.files import HostFile
from swift.operations.deploy.hosts import HostError, RemoteHosts
from test.support.deploy import inventory_of

FILE = HostFile("/etc/swift/swift.conf", b"the-secret", "root:swift")


@pytest.fixture
def host(tmp_path):
    return inventory_of(tmp_path).hosts[0]


def remote(tmp_path, *ssh, **options):
    return RemoteHosts(dataclasses.replace(inventory_of(tmp_path).cluster, ssh=ssh, **options))


def test_the_command_is_ssh_the_target_and_a_shell(tmp_path, host):
    assert remote(tmp_path, "ip", "netns", "exec").command(host) == [
        *("ip", "netns", "exec", "10.0.0.1", "sh", "-s")
    ]
    assert remote(tmp_path, "ssh", sudo=True).command(host)[-4:] == ["sudo", "-n", "sh", "-s"]
    assert remote(tmp_path, "ssh").command(dataclasses.replace(host, target="")) == ["sh", "-s"]


def through(answer):
    """A command in the place of ssh that prints an answer and ignores the script."""
    return "sh", "-c", f"cat >/dev/null; {answer}; true", "x"


@pytest.mark.process
def test_the_state_of_a_host_is_read_from_its_answer(tmp_path, host):
    answer = (
        "echo file /etc/swift/swift.conf abc root:swift:640; echo hash 123; echo pending swift-proxy.service;"
        "echo unit swift-proxy-server.service swift-proxy.service enabled inactive; echo end"
    )
    state = remote(tmp_path, *through(answer)).inspect(host, [FILE], ["swift-proxy-server"])
    assert state.files[FILE.path].access == "root:swift:640"
    assert (state.hash_digest, state.pending) == ("123", ("swift-proxy.service",))
    unit = state.units["swift-proxy-server"]
    assert (unit.name, unit.is_enabled, unit.is_active) == ("swift-proxy.service", True, False)


@pytest.mark.process
def test_an_answer_that_breaks_off_is_no_state(tmp_path, host):
    with pytest.raises(HostError, match="host one: its response is incomplete"):
        remote(tmp_path, *through("echo hash 123")).inspect(host, [], [])


@pytest.mark.process
def test_an_error_is_the_last_line_of_the_host(tmp_path, host):
    failing = ("sh", "-c", "cat >/dev/null; echo first >&2; echo no route >&2; exit 255")
    with pytest.raises(HostError) as failed:
        remote(tmp_path, *failing).install(host, [FILE], [])
    assert str(failed.value) == "host one: writing files failed: no route"
    with pytest.raises(HostError, match="host one: cannot run no-such-ssh: No such file"):
        remote(tmp_path, "no-such-ssh").install(host, [FILE], [])


@pytest.mark.process
def test_files_travel_as_standard_input_not_as_arguments(tmp_path, host):
    kept = tmp_path / "script"
    remote(tmp_path, "sh", "-c", f"cat >{kept}; echo $* >{kept}.words", "x").install(
        host, [FILE], ["swift-a"]
    )
    script = kept.read_text()
    assert "prepare 0 /etc/swift/swift.conf root:swift 640" in script
    # The reload is noted before the first file gets its name.
    assert script.index("swift-a >>") < script.index("rename /etc/swift/swift.conf\n")
    assert "secret" not in (tmp_path / "script.words").read_text()
    assert "secret" not in repr(FILE)


class Machine:
    """A host whose /etc is a folder: scripts run here, with its paths in the place of theirs."""

    def __init__(self, folder):
        self.etc = folder / "etc"
        (self.etc / "swift").mkdir(parents=True)
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
        self.owner = f"{user}:{group}"
        shell = f"sed 's#/etc/#{self.etc}/#g' | sh -s"
        self.access = remote(folder, "sh", "-c", shell, "x", user=group)
        self.host = inventory_of(folder).hosts[0]

    def file(self, name, content):
        # A path outside of /etc in the archive's text cannot be changed by sed: it is in base64.
        return HostFile(f"/etc/{name}", content, self.owner, "640")

    def install(self, *files):
        self.access.install(self.host, files, [])

    def written(self):
        found = self.access.inspect(self.host, [], []).written
        return {path.removeprefix(f"{self.etc}/"): is_written for path, is_written in found.items()}

    def remove(self, *names):
        self.access.remove(self.host, [f"/etc/{name}" for name in names])

    def texts(self):
        return {
            str(path.relative_to(self.etc)): path.read_text()
            for path in self.etc.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.process
def test_written_files_are_recorded_until_they_are_removed(machine):
    first, second = "swift/a.conf", "swift/object-server/replication.conf"
    machine.install(machine.file(first, b"1"), machine.file(second, b"1"))
    machine.install(machine.file(first, b"2"))
    assert machine.texts() == {first: "2", second: "1"}
    assert machine.written() == {first: True, second: True}
    (machine.etc / first).write_text("by hand")
    assert machine.written() == {first: False, second: True}
    machine.remove(second)
    assert machine.written() == {first: False} and not (machine.etc / second).parent.exists()
    machine.remove(first)
    assert list((machine.etc / "swift").iterdir()) == []


@pytest.mark.process
def test_a_file_that_was_there_before_comes_back(machine):
    (machine.etc / "memcached.conf").write_text("of the package")
    for text in (b"ours", b"changed"):
        machine.install(machine.file("memcached.conf", text))
    machine.remove("memcached.conf")
    assert machine.texts() == {"memcached.conf": "of the package"}
    assert machine.written() == {}


@pytest.mark.process
@pytest.mark.parametrize("folder", ["b.conf", "b.conf.d"])
def test_a_directory_is_the_configuration_that_it_stands_for(tmp_path, host, folder):
    (tmp_path / folder).mkdir()
    for name, text in (("2.conf", "second"), ("1.conf", "first"), ("note", "none")):
        (tmp_path / folder / name).write_text(text)
    paths = [f"{tmp_path}/{name}" for name in ("b.conf", "c.conf")]
    assert remote(tmp_path, "sh", "-c", "sh -s", "x").read(host, paths) == {paths[0]: b"first\nsecond\n"}


@pytest.mark.process
def test_nothing_is_replaced_while_a_directory_stands_in_the_place_of_a_file(machine):
    machine.install(machine.file("swift/a.conf", b"1"))
    (machine.etc / "swift" / "b.conf").mkdir()
    with pytest.raises(HostError, match="b.conf is a directory: move it away"):
        machine.install(machine.file("swift/a.conf", b"2"), machine.file("swift/b.conf", b"2"))
    assert machine.texts()["swift/a.conf"] == "1" and machine.written() == {"swift/a.conf": True}


@pytest.mark.process
def test_links_in_the_folder_of_the_configuration_are_not_followed(machine):
    """The servers' user may own that folder; root writes there."""
    (machine.etc / "foreign").write_text("foreign")
    for name in (".swift-deploy-pending", ".swift-deploy-files", "a.conf", "a.conf.swift-deploy"):
        (machine.etc / "swift" / name).symlink_to(machine.etc / "foreign")
    for name in (".swift-deploy-files.swift-deploy", ".swift-deploy-pending.swift-deploy"):
        (machine.etc / "swift" / name).symlink_to(machine.etc / "new")
    machine.access.install(machine.host, [machine.file("swift/a.conf", b"1")], ["swift-a"])
    assert (machine.etc / "foreign").read_text() == "foreign"
    assert not (machine.etc / "new").exists()
    assert (machine.etc / "swift" / "a.conf").read_text() == "1"
    state = machine.access.inspect(machine.host, [], [])
    assert state.pending == ("swift-a",) and list(state.written.values()) == [True]
    machine.remove("swift/a.conf")
    assert (machine.etc / "foreign").read_text() == "foreign"


@pytest.mark.process
def test_a_record_that_others_can_have_made_is_not_believed(machine):
    machine.install(machine.file("swift/a.conf", b"1"))
    record = machine.etc / "swift" / ".swift-deploy-files"
    record.rename(record.with_name("moved"))
    record.symlink_to(record.with_name("moved"))
    assert machine.written() == {}
    if os.getuid() == 0:
        record.with_name("moved").replace(record)
        os.chown(record, 65534, -1)
        assert machine.written() == {}


@pytest.mark.process
def test_an_installed_file_has_the_time_of_its_installation(machine):
    """Servers notice new rings by their times."""
    machine.install(machine.file("swift/object.ring.gz", b"1"))
    assert (machine.etc / "swift" / "object.ring.gz").stat().st_mtime > 1e9


@pytest.mark.process
@pytest.mark.parametrize(
    "answer",
    [
        "written /etc/swift/$(reboot) 1 1",
        "written /etc/swift/'x 1 1",
        "pending -H",
        "unit swift-a.service \x1b[31m enabled active",
    ],
)
def test_a_host_that_reports_odd_names_is_refused(tmp_path, host, answer):
    (tmp_path / "answer").write_text(f"Welcome to Debian!\n{answer}\nend\n")
    with pytest.raises(HostError, match="odd name") as refused:
        remote(tmp_path, *through(f"cat {tmp_path}/answer")).inspect(host, [], ["swift-a"])
    assert str(refused.value).isprintable()


@pytest.mark.process
def test_an_error_of_a_host_has_no_control_characters(tmp_path, host):
    failing = ("sh", "-c", "cat >/dev/null; printf 'no \\033[2J route\\n' >&2; exit 1")
    with pytest.raises(HostError, match=r"failed: no \?\[2J route"):
        remote(tmp_path, *failing).inspect(host, [], [])


@pytest.mark.process
@pytest.mark.parametrize("stream", [1, 2])
def test_a_host_that_prints_without_end_is_cut_off(tmp_path, host, stream):
    with pytest.raises(HostError, match="host one: reading its state printed more than 4194304 bytes"):
        remote(tmp_path, "sh", "-c", f"exec cat /dev/zero >&{stream}", "x").inspect(host, [], [])


@pytest.mark.process
def test_a_host_that_reads_nothing_of_a_long_script_is_an_error(tmp_path, host):
    large = HostFile("/etc/swift/object.ring.gz", os.urandom(1 << 20), "root:swift")
    with pytest.raises(HostError, match="writing files failed: no shell"):
        remote(tmp_path, "sh", "-c", "exec <&-; echo no shell >&2; exit 3", "x").install(host, [large], [])


@pytest.mark.process
def test_a_long_script_arrives_as_a_whole(machine):
    content = os.urandom(1 << 20).hex().encode()
    machine.install(machine.file("swift/object.ring.gz", content))
    assert (machine.etc / "swift" / "object.ring.gz").read_bytes() == content


@pytest.mark.process
def test_units_are_let_write_where_the_configuration_says_before_they_reload(tmp_path, host):
    """Commands of the host are scripts that note their words."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "systemctl").write_text(f"#!/bin/sh\necho systemctl $* >>{tmp_path}/done\n")
    (commands / "swift-config").write_text(
        f"#!/bin/sh\necho swift-config $* >>{tmp_path}/done\n"
        "echo 'Then run: systemctl daemon-reload && systemctl try-restart swift-object.service'\n"
    )
    for path in commands.iterdir():
        path.chmod(0o755)
    access = remote(tmp_path, "sh", "-c", f"PATH={commands}:$PATH sh -s", "x")
    access.switch_units(host, ["b"], [], ["a"])
    assert (tmp_path / "done").read_text().splitlines() == [
        "swift-config --units",
        "systemctl daemon-reload",
        "systemctl try-restart swift-object.service",
        "systemctl try-reload-or-restart a",
        "systemctl enable --now b",
    ]
