"""systemd itself finds nothing to say about any unit that we generate."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swift.operations.health.evaluate import Severity
from tools.generate.units import BIN, files

ROOT = Path(__file__).parents[3]
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze of the package systemd"
)


def our_units(_folder):
    """Return the units as the distribution has them."""
    return {path.name: text for path, text in files(ROOT)}


def debian_units(folder):
    """Return the units as Debian's packages have them."""
    for path, text in files(ROOT):
        (folder / "source").mkdir(exist_ok=True)
        (folder / "source" / path.name).write_text(text)
    script = ROOT / "debian/units.py"
    subprocess.run([sys.executable, script, folder / "source", folder / "debian"], check=True)
    return {path.name: path.read_text() for path in folder.glob("debian/*/lib/systemd/system/*")}


def verify(folder, units, change=lambda text: text):
    """Return the messages of ``systemd-analyze verify`` and its exit code.

    Templates are verified as instance ``1``, and every alias like a unit.
    """
    programs = folder / "bin"
    programs.mkdir()
    for unit, text in units.items():
        text = change(text).replace(f"{BIN}/swift", f"{programs}/swift")
        for program in re.findall(rf"{programs}/[^ \n]*", text):
            shutil.copy("/bin/true", program)
        name = unit.replace("@.", "@1.")
        (folder / name).write_text(text)
        for alias in re.findall(r"^Alias=(.*)", text, re.M):
            for other in alias.replace("%i", "1").split():
                (folder / other).symlink_to(name)
    names = [path.name for path in folder.iterdir() if not path.is_dir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names],
        cwd=folder,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr, done.returncode, set(names)


@pytest.mark.process
@needs_systemd
@pytest.mark.parametrize("family", [our_units, debian_units])
def test_systemd_accepts_every_unit_under_all_of_its_names(tmp_path, family):
    output, code, names = verify(tmp_path, family(tmp_path))
    assert (output, code) == ("", 0)
    for kind in ("account", "container", "object", "proxy"):
        for instance in ("", "@1"):
            for name in (f"swift-{kind}-server", f"openstack-swift-{kind}"):
                assert f"{name}{instance}.service" in names
    assert "swift-health-history.timer" in names


@pytest.mark.process
def test_debian_packages_have_all_units_under_debian_names(tmp_path):
    ours, debian = our_units(tmp_path), debian_units(tmp_path)
    assert set(debian) == {re.sub(r"-server(?=[@.])", "", name) for name in ours}
    assert (
        "\nAlias=swift-object-server@%i.service openstack-swift-object@%i.service\n"
        in (debian["swift-object@.service"])
    )


def test_every_oneshot_of_a_timer_waits_for_its_configuration():
    units = our_units(None)
    for name in units:
        if name.endswith(".timer"):
            assert "\nConditionPathExists=/etc/swift/" in units[name.replace(".timer", ".service")], name


def test_no_severity_of_the_health_fails_the_unit_of_its_history():
    unit = our_units(None)["swift-health-history.service"]
    success = re.findall(r"^SuccessExitStatus=(.*)", unit, re.M)[0].split()
    assert {int(code) for code in success} == set(Severity) - {Severity.OK}


@pytest.mark.process
@needs_systemd
@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("LockPersonality=", "LockPersonalities=", "Unknown key"),
        ("KillMode=mixed", "KillMode=some", "Failed to parse kill mode"),
        (f"ExecStart={BIN}/swift", "ExecStart=/nowhere/swift", "is not executable"),
    ],
)
def test_a_mistake_in_a_unit_is_found(tmp_path, good, bad, message):
    output, _code, _names = verify(tmp_path, our_units(tmp_path), lambda text: text.replace(good, bad))
    assert message in output
