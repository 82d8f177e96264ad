"""A node gets the files of a manifest completely, at whatever step it stops, and no worse ones."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from array import array
from dataclasses import replace

import pytest

from swift.base.clock import ManualClock
from swift.platform.disk import Disk
from swift.ring import builderfile, partpower
from swift.ring.errors import LayoutError, RingError
from swift.ring.layoutfiles import (
    FileStates,
    LayoutFolder,
    check_follows,
    create_keys,
    drop_former_keys,
    install,
    prepare_next_key,
    publish,
    read_private_key,
    use_next_key,
)
from swift.ring.manifest import FileEntry, Manifest, parse_private_key, sign
from swift.ring.ringfile import encode, load_table, save_table
from test.support.layoutnodes import Crash, FailingDisk

NAMES = ("account", "container", "object", "object-1")
CLOCK = ManualClock(1.7e9)


@pytest.fixture
def builders(make_builder):
    """Builders of four rings, each balanced."""
    made = {name: make_builder(min_part_hours=0) for name in NAMES}
    for name, builder in made.items():
        builder.id = name
        builder.rebalance(seed=name)
    return made


def files_of(builders):
    """The content of the ring and builder files of builders."""
    made = {}
    for name, builder in builders.items():
        made[f"{name}.ring.gz"] = encode(builder.table(), f"{name}.ring.gz")
        made[f"{name}.builder"] = builderfile.dumps(builder._fields())
    return made


def changed(builders, zone=9):
    """The files after a device was added to each ring."""
    for builder in builders.values():
        builder.add_device(region=1, zone=zone, ip=f"10.1.0.{zone}", port=6200, device="sdb", weight=100)
        builder.rebalance(seed=zone)
    return files_of(builders)


class Cluster:
    """A controller and the folders of nodes."""

    def __init__(self, root):
        self.root = root
        self.controller = root / "controller"
        self.controller.mkdir()
        create_keys(str(self.controller))
        self.key = read_private_key(str(self.controller))

    def node(self, name="node"):
        folder = self.root / name
        folder.mkdir()
        shutil.copy(self.controller / "layout.pub", folder)
        return folder

    def publish(self, files, **options):
        publish(str(self.controller), self.key, files, clock=CLOCK, **options)
        return (self.controller / "layout.manifest").read_bytes()


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def content(folder):
    """The layout files of a folder, other than the keys."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in (".pub", ".key")
    }


def staged(folder):
    return sorted(path.name for path in (folder / "layout.staged").iterdir())


# --- keys -------------------------------------------------------------------------------------------


def test_new_keys_are_a_pair_and_the_private_one_is_private(tmp_path):
    trusted = create_keys(str(tmp_path))
    assert LayoutFolder(str(tmp_path)).trusted_keys() == trusted
    assert stat.S_IMODE(os.stat(tmp_path / "layout.key").st_mode) == 0o600
    assert read_private_key(str(tmp_path)) == parse_private_key((tmp_path / "layout.key").read_text())


@pytest.mark.parametrize("name", ["layout.key", "layout.pub"])
def test_keys_never_replace_others(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(LayoutError, match=f"{name} exists"):
        create_keys(str(tmp_path))


def test_a_private_key_that_others_can_read_is_refused(tmp_path):
    create_keys(str(tmp_path))
    os.chmod(tmp_path / "layout.key", 0o644)
    with pytest.raises(LayoutError, match="chmod 0600"):
        read_private_key(str(tmp_path))


def test_keys_are_rotated_without_a_node_that_cannot_verify(cluster, builders):
    folder, root = cluster.node(), cluster.controller
    files = files_of(builders)
    install(str(folder), cluster.publish(files), files)
    prepare_next_key(str(root))
    with pytest.raises(LayoutError, match="has layout.key.next already"):
        prepare_next_key(str(root))
    shutil.copy(root / "layout.pub", folder)
    install(str(folder), cluster.publish(files), files)
    use_next_key(str(root))
    # Nodes would not know the signature of the manifest of now.
    with pytest.raises(LayoutError, match="not in layout.pub"):
        drop_former_keys(str(root))
    former, cluster.key = cluster.key, read_private_key(str(root))
    assert cluster.key != former
    install(str(folder), cluster.publish(files), files)
    assert len(drop_former_keys(str(root)).keys) == 1
    shutil.copy(root / "layout.pub", folder)
    assert LayoutFolder(str(folder)).installed().manifest.version == 3
    with pytest.raises(LayoutError, match="is not in"):
        publish(str(root), former, files)


def test_a_folder_without_public_keys_has_no_layout(cluster, builders, tmp_path):
    data = cluster.publish(files_of(builders))
    folder = cluster.node()
    (folder / "layout.pub").unlink()
    assert LayoutFolder(str(folder)).trusted_keys() is None
    assert LayoutFolder(str(folder)).installed() is None
    with pytest.raises(LayoutError, match="layout.pub is missing"):
        install(str(folder), data, files_of(builders))
    with pytest.raises(LayoutError, match="layout.pub is missing"):
        publish(str(folder), cluster.key, files_of(builders))


# --- publishing and installing ----------------------------------------------------------------------


def test_versions_count_from_one_and_all_files_arrive(cluster, builders):
    first = files_of(builders)
    data = cluster.publish(first)
    folder = cluster.node()
    assert install(str(folder), data, first).version == 1
    assert content(folder) == {**first, "layout.manifest": data}
    second = changed(builders)
    data = cluster.publish(second)
    assert install(str(folder), data, second).version == 2
    assert content(folder) == {**second, "layout.manifest": data}
    assert staged(folder) == []
    installed = LayoutFolder(str(folder)).installed()
    assert (installed.manifest.version, installed.data) == (2, data)


def test_only_what_a_node_lacks_is_needed(cluster, builders):
    first = files_of(builders)
    folder = cluster.node()
    install(str(folder), cluster.publish(first), first)
    some = changed({"object": builders["object"]})
    data = cluster.publish({**first, **some})
    assert LayoutFolder(str(folder)).open(data).missing() == ["object.builder", "object.ring.gz"]
    install(str(folder), data, some)
    assert content(folder) == {**first, **some, "layout.manifest": data}


def test_files_with_equal_content_are_all_placed(cluster, builders):
    files = files_of(builders)
    files["object-2.ring.gz"] = files["object-1.ring.gz"]
    folder = cluster.node()
    install(str(folder), cluster.publish(files), files)
    assert content(folder).items() >= files.items()


def test_the_same_version_can_be_published_again(cluster, builders):
    first, second = files_of(builders), changed(builders)
    root = str(cluster.controller)
    for _ in range(2):
        made = publish(root, cluster.key, first, version=42, issued_s=1.0)
        assert (made.version, made.issued_s) == (42, 1.0)
        assert LayoutFolder(root).installed().manifest == made
    assert publish(root, cluster.key, second).version == 43
    with pytest.raises(LayoutError, match="is older than"):
        publish(root, cluster.key, first, version=42, issued_s=1.0)


def test_only_a_trusted_key_publishes(cluster, builders):
    with pytest.raises(LayoutError, match=r"the public key of layout.key is not in .*/layout.pub"):
        publish(str(cluster.controller), bytes(32), files_of(builders))
    assert not (cluster.controller / "layout.manifest").exists()


def test_a_controller_with_a_damaged_manifest_does_not_begin_anew(cluster, builders):
    cluster.publish(files_of(builders))
    (cluster.controller / "layout.manifest").write_bytes(b"damaged")
    with pytest.raises(LayoutError, match=r"layout.manifest: it does not begin with"):
        cluster.publish(files_of(builders))


def test_owners_and_permissions_stay(cluster, builders):
    files = files_of(builders)
    folder = cluster.node()
    (folder / "object.ring.gz").write_bytes(b"damaged")
    os.chmod(folder / "object.ring.gz", 0o640)
    os.chown(folder / "object.ring.gz", 12, 34) if os.geteuid() == 0 else None
    owner = os.stat(folder / "object.ring.gz").st_uid
    install(str(folder), cluster.publish(files), files)
    status = os.stat(folder / "object.ring.gz")
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o640, owner)
    assert stat.S_IMODE(os.stat(folder / "account.ring.gz").st_mode) == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_root_makes_belongs_to_the_user_that_replaces_it(cluster, builders):
    files = files_of(builders)
    folder = cluster.node()
    (folder / "object.ring.gz").write_bytes(files["object.ring.gz"])
    os.chown(folder / "object.ring.gz", 12, 34)
    install(str(folder), cluster.publish(files), files)
    (folder / "layout.pub").unlink()
    create_keys(str(folder))
    owners = {path.name: path.stat().st_uid for path in folder.iterdir()}
    assert owners.pop("layout.pub") == owners.pop("layout.key") == 12
    assert set(owners.values()) == {12}


# --- what is refused --------------------------------------------------------------------------------


@pytest.fixture
def two(cluster, builders):
    """A node with version 1, and what comes with version 2."""
    first = files_of(builders)
    folder = cluster.node()
    install(str(folder), cluster.publish(first), first)
    second = changed(builders)
    return folder, cluster.publish(second), second


def test_an_older_manifest_is_refused(cluster, two):
    folder, data, files = two
    before = content(folder)
    install(str(folder), data, files)
    first = {name: before[name] for name in files}
    with pytest.raises(LayoutError, match="is older than layout version 2"):
        install(str(folder), before["layout.manifest"], first)
    assert content(folder) == {**files, "layout.manifest": data}


@pytest.mark.parametrize("name", ["account.ring.gz", "object-1.builder"])
@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: bytes(len(data))]
)
def test_other_content_is_refused_and_nothing_changes(two, name, spoil):
    folder, data, files = two
    before = content(folder)
    with pytest.raises(LayoutError, match=f"{name} has not the checksum and size"):
        install(str(folder), data, {**files, name: spoil(files[name])})
    assert content(folder) == before


def test_swapped_files_are_refused(two):
    folder, data, files = two
    files["account.ring.gz"], files["object.ring.gz"] = files["object.ring.gz"], files["account.ring.gz"]
    with pytest.raises(LayoutError, match="has not the checksum"):
        install(str(folder), data, files)


def test_a_missing_file_is_named_and_nothing_changes(two):
    folder, data, files = two
    before = content(folder)
    del files["object.ring.gz"]
    with pytest.raises(LayoutError, match="object.ring.gz of layout version 2 .* have not arrived"):
        install(str(folder), data, files)
    assert content(folder) == before


def test_files_beside_the_manifest_are_not_stored(two):
    folder, data, files = two
    with pytest.raises(LayoutError, match="swift.conf is not in layout version 2"):
        LayoutFolder(str(folder)).open(data).stage("swift.conf", b"")
    install(str(folder), data, {**files, "../escape": b"x", "swift.conf": b"x"})
    assert set(content(folder)) == {*files, "layout.manifest"}
    assert not (folder.parent / "escape").exists()


def refused(cluster, folder, files):
    """The reason for which a node refuses files that were signed unchecked."""
    trusted = LayoutFolder(str(folder)).trusted_keys()
    entries = {name: FileEntry.of(data) for name, data in files.items()}
    data = sign(Manifest(trusted.cluster, 99, 1.8e9, entries), cluster.key)
    before = content(folder)
    with pytest.raises(LayoutError) as caught:
        install(str(folder), data, files)
    assert content(folder) == before
    return str(caught.value)


def test_signed_files_that_are_no_rings_or_builders_are_refused(cluster, two):
    folder, _data, files = two
    assert "not gzip" in refused(cluster, folder, {**files, "account.ring.gz": b"no ring"})
    assert (
        "truncated" in refused(cluster, folder, {**files, "object.ring.gz": files["object.ring.gz"][:-9]})
        or "damaged"
    )
    assert "object.builder" in refused(cluster, folder, {**files, "object.builder": b"no builder"})


def test_a_ring_without_devices_is_refused(cluster, two, builders):
    folder, _data, files = two
    table = builders["account"].table()
    files["account.ring.gz"] = encode(replace(table, records=(), rows=()), "account.ring.gz")
    assert "it has no devices" in refused(cluster, folder, files)


def test_a_ring_that_names_unknown_devices_is_refused(cluster, two, builders):
    folder, _data, files = two
    table = builders["account"].table()
    rows = (array("H", [500] * len(table.rows[0])), *table.rows[1:])
    files["account.ring.gz"] = encode(replace(table, rows=rows), "account.ring.gz")
    assert "assigned to device 500, which does not exist" in refused(cluster, folder, files)


def test_a_builder_of_another_ring_is_refused(cluster, two):
    folder, _data, files = two
    files["object.builder"] = files["account.builder"]
    assert "object.ring.gz is not its ring" in refused(cluster, folder, files)


def test_a_builder_that_fell_behind_its_ring_is_refused(cluster, two):
    folder, _data, files = two
    files["object.builder"] = (folder / "object.builder").read_bytes()
    assert "object.ring.gz is not its ring" in refused(cluster, folder, files)


def test_a_ring_with_another_part_power_is_refused(cluster, two, make_builder):
    folder, _data, files = two
    other = make_builder(part_power=5)
    other.rebalance()
    other.version = 1000
    del files["account.builder"]
    files["account.ring.gz"] = encode(other.table(), "account.ring.gz")
    sentence = refused(cluster, folder, files)
    assert "its part power is 5, that of the present ring 6" in sentence
    assert "remove the present ring to take it" in sentence
    (folder / "account.ring.gz").unlink()
    entries = {name: FileEntry.of(data) for name, data in files.items()}
    trusted = LayoutFolder(str(folder)).trusted_keys()
    data = sign(Manifest(trusted.cluster, 99, 1.8e9, entries), cluster.key)
    assert install(str(folder), data, files).version == 99


def test_an_older_ring_under_a_newer_manifest_is_refused(cluster, two):
    folder, data, files = two
    before = content(folder)
    install(str(folder), data, files)
    old = {name: before[name] for name in files}
    assert "its version is" in refused(cluster, folder, old)


def test_policies_have_a_say(cluster, builders):
    def check(name, table):
        if name == "object-1.ring.gz":
            raise RingError(f"it has {table.replica_count:g} replicas, policy ec needs exactly 6")

    with pytest.raises(LayoutError, match="needs exactly 6"):
        cluster.publish(files_of(builders), check=check)
    assert not (cluster.controller / "layout.manifest").exists()


def test_a_part_power_increase_goes_step_by_step(cluster, builders):
    folder = cluster.node()
    for step in (
        lambda _builder: None,
        partpower.prepare_increase,
        partpower.increase,
        partpower.finish_increase,
        partpower.prepare_increase,
        partpower.cancel_increase,
        partpower.finish_increase,
    ):
        for builder in builders.values():
            step(builder)
        files = files_of(builders)
        install(str(folder), cluster.publish(files), files)


@pytest.mark.parametrize(
    ("before", "after", "is_taken"),
    [
        ((6, None), (6, None), True),
        ((6, None), (6, 7), True),
        ((6, 7), (7, 7), True),
        ((7, 7), (7, None), True),
        ((6, 7), (6, 6), True),
        ((6, 6), (6, None), True),
        # The step of relinking was missed; files are found in the old partitions.
        ((6, None), (7, 7), True),
        ((6, None), (7, None), False),
        ((6, 7), (7, None), False),
        ((6, None), (7, 8), False),
        ((6, None), (8, 8), False),
        ((7, 7), (6, 7), False),
        ((7, None), (6, None), False),
    ],
)
def test_rings_follow_by_steps_that_nodes_can_follow(make_builder, before, after, is_taken):
    def table(state):
        builder = make_builder(part_power=state[0])
        builder.next_part_power = state[1]
        return builder.table()

    if is_taken:
        check_follows(table(after), table(before))
    else:
        with pytest.raises(LayoutError, match="no step of a part power increase"):
            check_follows(table(after), table(before))


# --- files that are not as the manifest has them ----------------------------------------------------


def test_files_are_told_apart(two):
    folder, data, files = two
    first = LayoutFolder(str(folder)).installed()
    own = {name: (folder / name).read_bytes() for name in files}
    layout = LayoutFolder(str(folder))
    assert layout.states(first.manifest) == FileStates()
    (folder / "account.ring.gz").unlink()
    (folder / "object.ring.gz").write_bytes(own["object.ring.gz"][:-1])
    (folder / "object.builder").write_bytes(b"x")
    (folder / "container.ring.gz").write_bytes(files["container.ring.gz"])
    (folder / "container.builder").write_bytes(files["container.builder"])
    assert layout.states(first.manifest) == FileStates(
        ("account.ring.gz",),
        ("object.builder", "object.ring.gz"),
        ("container.builder", "container.ring.gz"),
    )
    installation = layout.open(first.data)
    assert sorted(installation.missing()) == ["account.ring.gz", "object.builder", "object.ring.gz"]
    install(str(folder), first.data, own)
    # Those that were changed by hand stay until the next version.
    assert content(folder) == {
        **own,
        "container.ring.gz": files["container.ring.gz"],
        "container.builder": files["container.builder"],
        "layout.manifest": first.data,
    }
    install(str(folder), data, files)
    assert content(folder) == {**files, "layout.manifest": data}


def test_a_ring_changed_by_hand_to_another_part_power_does_not_stop_the_next_version(two, make_builder):
    folder, data, files = two
    other = make_builder(part_power=9)
    other.rebalance()
    (folder / "object.ring.gz").write_bytes(encode(other.table(), "object.ring.gz"))
    install(str(folder), data, files)
    assert (folder / "object.ring.gz").read_bytes() == files["object.ring.gz"]


def test_a_link_in_place_of_the_staged_files_is_not_followed(two, tmp_path):
    folder, data, files = two
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (folder / "layout.staged").rmdir()
    (folder / "layout.staged").symlink_to(kept)
    with pytest.raises(LayoutError, match="layout.staged is a symbolic link: remove it"):
        install(str(folder), data, files)
    assert [path.name for path in kept.iterdir()] == ["file"]


def test_a_ring_changed_by_hand_takes_no_ring_of_another_part_power(cluster, two, make_builder):
    folder, _data, files = two
    path = str(folder / "object.ring.gz")
    present = load_table(path)
    save_table(replace(present, build_version=present.build_version + 50), path)
    other = make_builder(part_power=9)
    other.rebalance()
    del files["object.builder"]
    files["object.ring.gz"] = encode(other.table(), "object.ring.gz")
    assert "its part power is 9, that of the present ring 6" in refused(cluster, folder, files)


def test_a_manifest_of_a_key_that_is_gone_is_no_manifest(cluster, two):
    folder, data, files = two
    (cluster.controller / "layout.key").unlink()
    pub = (cluster.controller / "layout.pub").read_text()
    (cluster.controller / "layout.pub").unlink()
    create_keys(str(cluster.controller))
    new = (cluster.controller / "layout.pub").read_text().split("\n", 1)[1]
    (folder / "layout.pub").write_text(pub.split("\n", 1)[0] + "\n" + new)
    with pytest.raises(LayoutError, match="which is not in layout.pub"):
        LayoutFolder(str(folder)).installed()
    with pytest.raises(LayoutError, match="which is not in layout.pub"):
        install(str(folder), data, files)


# --- faults -----------------------------------------------------------------------------------------


def changes_of(two, tmp_path):
    """The number of changes of the disk by an installation."""
    folder, data, files = two
    copy = tmp_path / "counted"
    shutil.copytree(folder, copy)
    disk = FailingDisk()
    install(str(copy), data, files, disk=disk)
    return disk.count


def test_a_node_that_stops_at_any_step_has_the_old_or_the_new_layout(two, tmp_path):
    folder, data, files = two
    old = content(folder)
    outcomes = []
    for at in range(changes_of(two, tmp_path) + 1):
        copy = tmp_path / f"crash-{at}"
        shutil.copytree(folder, copy)
        try:
            install(str(copy), data, files, disk=FailingDisk(at))
        except Crash:
            pass
        now = content(copy)
        for name in files:
            assert now[name] in (old[name], files[name]), (at, name)
        # The next start has no network.
        layout = LayoutFolder(str(copy))
        recovered = layout.recover()
        after = content(copy)
        is_new = after == {**files, "layout.manifest": data}
        assert is_new or (recovered is None and after == now == old), at
        outcomes.append((is_new, recovered is not None))
        # Nor does it hinder what comes then.
        install(str(copy), data, files)
        assert content(copy) == {**files, "layout.manifest": data}
        assert staged(copy) == []
        shutil.rmtree(copy)
    assert set(outcomes) == {(False, False), (True, True), (True, False)}


def test_a_recovery_that_stops_at_any_step_is_finished_by_the_next(two, tmp_path):
    folder, data, files = two
    count = changes_of(two, tmp_path)
    for at in range(count):
        copy = tmp_path / "crash"
        shutil.copytree(folder, copy)
        with pytest.raises(Crash):
            install(str(copy), data, files, disk=FailingDisk(at))
        if not (copy / "layout.staged/manifest").exists():
            shutil.rmtree(copy)
            continue
        for second in range(0, 30, 7):
            again = tmp_path / "again"
            shutil.copytree(copy, again)
            try:
                LayoutFolder(str(again), disk=FailingDisk(second)).recover()
            except Crash:
                pass
            LayoutFolder(str(again)).recover()
            assert content(again) == {**files, "layout.manifest": data}, (at, second)
            shutil.rmtree(again)
        shutil.rmtree(copy)


def test_an_error_at_any_step_is_raised_and_the_next_try_succeeds(two, tmp_path):
    folder, data, files = two
    old = content(folder)
    copy = tmp_path / "failed"
    for at in range(changes_of(two, tmp_path)):
        shutil.copytree(folder, copy)
        try:
            install(str(copy), data, files, disk=FailingDisk(at, errno.ENOSPC))
        except OSError as error:
            assert error.errno == errno.ENOSPC
            now = content(copy)
            assert all(now[name] in (old[name], files[name]) for name in files)
        install(str(copy), data, files)
        assert content(copy) == {**files, "layout.manifest": data}
        shutil.rmtree(copy)


def test_an_interrupted_change_is_dropped_if_its_files_are_gone(two):
    folder, data, files = two
    old = content(folder)
    with pytest.raises(Crash):
        install(str(folder), data, files, disk=crash_at_rename(folder, data, files))
    (folder / "layout.staged/object.ring.gz").write_bytes(b"damaged")
    layout = LayoutFolder(str(folder))
    with pytest.raises(LayoutError, match="have not arrived"):
        layout.recover()
    assert layout.recover() is None
    assert content(folder) == old
    install(str(folder), data, files)
    assert content(folder) == {**files, "layout.manifest": data}


def test_a_forged_record_of_a_change_is_dropped(two):
    folder, data, _files = two
    (folder / "layout.staged").mkdir(exist_ok=True)
    (folder / "layout.staged/manifest").write_bytes(data.replace(b'"version": 2', b'"version": 3'))
    with pytest.raises(LayoutError, match="signature"):
        LayoutFolder(str(folder)).recover()
    assert LayoutFolder(str(folder)).recover() is None


def crash_at_rename(folder, data, files):
    """A disk that ends the process when the first ring would get its place."""

    class CrashingDisk(Disk):
        def rename(self, source, target, **options):
            if "layout.staged" in source and "layout.staged" not in target:
                raise Crash
            os.rename(source, target, **options)

    return CrashingDisk()
