"""The distribution: package, entry points with the peer's names, console scripts."""

import json
import re
from pathlib import Path

from setuptools import Extension, find_packages, setup

HERE = Path(__file__).parent
NAME, VERSION = (
    re.search(rf'^{name} = "([^"]+)"', (HERE / "swift/__init__.py").read_text(), re.M)[1]
    for name in ("DISTRIBUTION", "__version__")
)

#: Filters and daemons declared in modules; written by ``python -m tools.generate``.
DECLARED = json.loads((HERE / "swift/config/declared.json").read_text())
#: Each module of ``swift.cli`` is a command, and so is each daemon (``swift/entry.py``).
COMMANDS = sorted(
    {
        *(
            path.stem.replace("_", "-")
            for path in (HERE / "swift/cli").glob("[a-z]*.py")
            if path.stem != "daemon"
        ),
        *DECLARED["daemons"],
        "ring-builder-safe",
    }
)
#: Folder below the prefix → the files that are installed there.
SHARED = {
    "share/man/man1": "doc/man/*.1",
    "share/swift/samples": "etc/*-sample",
    "share/swift/systemd": "etc/systemd/*",
    "share/swift/grafana": "etc/grafana/*",
    "share/swift/prometheus": "etc/prometheus/*",
    "share/swift/logrotate.d": "etc/logrotate.d/*",
    "share/swift/rsyslog.d": "etc/rsyslog.d/*",
    "share/bash-completion/completions": "etc/completions/swift.bash",
    "share/zsh/site-functions": "etc/completions/_swift",
}
#: What swift-load needs beyond the servers.
LOAD = ["rich>=13", "hdrhistogram>=0.10", "matplotlib>=3.7", "numpy>=1.24"]
#: Several steps of file work in one call; what does without is slower. One binary is for all Pythons.
NATIVE = Extension("swift.platform.native", ["swift/platform/native.c"], py_limited_api=True, optional=True)
setup(
    name=NAME,
    version=VERSION,
    description="An object store that speaks OpenStack Swift's API, formats and protocols",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    keywords="object storage, OpenStack Swift, erasure coding, WSGI",
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: No Input/Output (Daemon)",
        "Intended Audience :: System Administrators",
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)),
        "Topic :: System :: Distributed Computing",
        "Topic :: System :: Filesystems",
    ],
    python_requires=">=3.11",
    ext_modules=[NATIVE],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    packages=find_packages(include=["swift", "swift.*"]),
    install_requires=[
        line.strip()
        for line in (HERE / "requirements.txt").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ],
    extras_require={
        "load": LOAD,
        "distributed": [*LOAD, "distributed>=2024.1"],
        "plan": ["simpy>=4.1", "matplotlib>=3.8"],
        "tier": ["lmdb>=2.1.1"],
        "packed": ["lmdb>=2.1.1"],
        "eventlet": ["eventlet>=0.36"],
        "opentelemetry": ["opentelemetry-sdk>=1.27", "opentelemetry-exporter-otlp-proto-http>=1.27"],
        "kms_keymaster": ["castellan>=5.0", "oslo.config>=9.0"],
        "kmip_keymaster": ["PyKMIP>=0.11"],
        "oidc": ["joserfc>=1.5"],
    },
    data_files=[
        (folder, sorted(str(path.relative_to(HERE)) for path in HERE.glob(pattern)))
        for folder, pattern in SHARED.items()
    ],
    package_data={
        "swift.load": ["workloads/*.toml"],
        "swift.config": ["declared.json", "known.json"],
        "swift.container.sync": ["internal-client.conf"],
        "swift.operations.deploy": ["sample.toml"],
        "swift.console": ["texts.toml", "static/*", "templates/*"],
    },
    entry_points={
        "paste.app_factory": [
            "proxy = swift.proxy.factory:app_factory",
            "account = swift.account.server:app_factory",
            "container = swift.container.server:app_factory",
            "object = swift.obj.server:app_factory",
        ],
        "paste.filter_factory": [
            f"{name} = {each['module']}:FILTER" for name, each in DECLARED["filters"].items()
        ],
        "swift.store_wrapper": ["observed = swift.store.observed:observe"],
        "swift.diskfile": [
            "replication.fs = swift.store.registry:file_store",
            "erasure_coding.fs = swift.store.registry:file_store",
            "replication.packed = swift.store.registry:packed_store",
            "erasure_coding.packed = swift.store.registry:packed_store",
        ],
        "swift.object_audit_watcher": ["dark_data = swift.obj.auditor.dark_data:DarkData"],
        "console_scripts": [
            f"swift-{name} = swift.entry:swift_{name.replace('-', '_')}" for name in COMMANDS
        ],
    },
)
