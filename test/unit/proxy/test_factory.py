"""The proxy from its configuration: what cannot be computed here is said once, and the rest works."""

import io
import subprocess
import sys

import pytest

from swift.base.errors import ConfigError
from swift.proxy.factory import app_factory
from test.support.peer import with_ec
from test.support.sim import write_rings


@pytest.fixture
def conf(tmp_path):
    write_rings(tmp_path)
    (tmp_path / "swift.conf").write_text(with_ec(3, 2, "ec32"))
    return {"swift_dir": str(tmp_path), "log_to_console": "true"}


def test_a_missing_library_is_one_line_at_the_start(conf, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "pyeclib", None)
    assert app_factory(conf).context.policies.get(1).is_ec
    lines = [line for line in capfd.readouterr().err.splitlines() if "ec32" in line]
    assert len(lines) == 1 and "cannot be served by this proxy: erasure coding needs PyECLib" in lines[0]


def test_with_the_library_nothing_is_said(conf, capfd):
    app_factory(conf)
    assert "out of order" not in capfd.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("true", "1"), ("false", "")])
def test_fragments_can_be_written_for_old_libraries(conf, monkeypatch, text, value):
    monkeypatch.setenv("LIBERASURECODE_WRITE_LEGACY_CRC", "before")
    app_factory(conf)
    assert __import__("os").environ["LIBERASURECODE_WRITE_LEGACY_CRC"] == "before"
    app_factory(conf, write_legacy_ec_crc=text)
    assert __import__("os").environ["LIBERASURECODE_WRITE_LEGACY_CRC"] == value


def _status_of(app, path):
    begun = []
    environ = {"REQUEST_METHOD": "HEAD", "PATH_INFO": path, "wsgi.input": io.BytesIO()}
    list(app(environ, lambda status, _headers: begun.append(int(status[:3]))))
    return begun[0]


def test_all_rings_are_in_memory_from_the_start(conf, tmp_path):
    rings = app_factory(conf).context.rings
    for path in tmp_path.glob("*.ring.gz"):
        path.write_bytes(b"damaged")
    # Accounts, containers and the two policies of swift.conf.
    assert len(rings.readable_views()) == 4


@pytest.mark.parametrize("content", [None, b"damaged"], ids=["missing", "damaged"])
def test_a_ring_that_was_never_read_costs_its_requests_one_line_each(conf, tmp_path, capfd, content):
    path = tmp_path / "account.ring.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    app = app_factory(conf)
    started = capfd.readouterr().err
    assert f"{path} cannot be used: " in started and "Traceback" not in started
    assert _status_of(app, "/v1/AUTH_test") == 503
    logged = capfd.readouterr().err
    assert f"ERROR cannot handle HEAD /v1/AUTH_test: {path}: " in logged and "Traceback" not in logged


@pytest.mark.process
def test_a_reload_is_refused_while_a_ring_cannot_be_read(conf, tmp_path):
    path = tmp_path / "proxy-server.conf"
    path.write_text(
        f"[DEFAULT]\nswift_dir = {tmp_path}\nuser = root\nbind_port = 1\n"
        "[pipeline:main]\npipeline = proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\n"
    )
    command = [sys.executable, "-m", "swift.cli.proxy_server", str(path), "--test-config"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    (tmp_path / "container.ring.gz").write_bytes(b"damaged")
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(f"{tmp_path}/container.ring.gz cannot be used: ")


def write_server(folder, kind="object", *, port=6210, filters=""):
    """Write the configuration of a storage server; return its path."""
    path = folder / f"{kind}-server.conf"
    sections = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in filters.split())
    path.write_text(
        f"[DEFAULT]\nswift_dir = {folder}\nbind_ip = 10.0.0.1\nbind_port = {port}\ndevices = {folder}\n"
        f"[pipeline:main]\npipeline = {filters} {kind}-server\n"
        f"{sections}[app:{kind}-server]\nuse = egg:swift#{kind}\n"
    )
    return str(path)


def test_devices_of_an_own_object_server_are_read_here(conf, tmp_path, capfd):
    context = app_factory(conf, local_reads=write_server(tmp_path, filters="healthcheck recon")).context
    own = [
        d.device for d in context.rings.object(context.policies.get(0)).view().devices if context.is_own(d)
    ]
    assert own == ["sdb1"]
    assert "local_reads" not in capfd.readouterr().err
    assert app_factory(conf).context.is_own is None


def test_local_reads_that_would_pass_a_filter_by_are_off(conf, tmp_path, capfd):
    path = write_server(tmp_path, filters="healthcheck device_admission")
    assert app_factory(conf, local_reads=path).context.is_own is None
    assert (
        f"local_reads is off: reads in the proxy would pass by device_admission of {path}"
        in capfd.readouterr().err
    )


def test_local_reads_of_no_device_are_told(conf, tmp_path, capfd):
    path = write_server(tmp_path, port=6999)
    app_factory(conf, local_reads=path)
    assert f"no ring has a device at the address and port of {path}" in capfd.readouterr().err


def test_local_reads_are_of_object_servers(conf, tmp_path):
    path = write_server(tmp_path, "container")
    with pytest.raises(
        ConfigError, match=f"{path}: option local_reads is for configurations of object servers"
    ):
        app_factory(conf, local_reads=path)
