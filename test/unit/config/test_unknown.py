"""Options that nothing reads are named, in every section and with what was probably meant."""

import json

import pytest

from swift.config.unknown import KNOWN_FILE, unknown_options
from tools.generate.samples import known_text

PROXY = """
[DEFAULT]
bind_port = 8080
bind_prot = 1
log_levl = INFO
interval = 5
statsd_user_label_dc = east
eventlet_debug = true
[pipeline:main]
pipeline = cache ours proxy-server
[app:proxy-server]
use = egg:swift#proxy
set log_name = proxy
log_facility = LOG_LOCAL1
node_timout = 5
object_chunk_size = 65536
[filter:caching]
use = egg:swift#memcache
tls_enabled = true
tls_cafiel = /x
[filter:ours]
paste.filter_factory = ours:factory
anything = goes
[filter:theirs]
use = egg:keystonemiddleware#auth_token
anything = goes
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
SERVICE_require_group = x
users_test_tester = testing
[filter:keystoneauth]
use = egg:swift#keystoneauth
SERVICE_operator_roles = x
is_admin = true
[proxy-server:policy:1]
sorting_method = timing
recheck_account_existence = 1
[loggers]
keys = root
"""


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "some.conf"
        path.write_text(text)
        return path

    return written


def test_every_section_is_looked_at_but_those_of_other_projects(write):
    path = write(PROXY)
    found = [line.removeprefix(f"{path} ") for line in unknown_options(str(path))]
    assert found == [
        "[DEFAULT]: unknown option bind_prot; did you mean bind_port?",
        "[DEFAULT]: unknown option log_levl; did you mean log_level?",
        "[DEFAULT]: option eventlet_debug has no effect: the event loop has no debugging output; "
        "use log_level = DEBUG",
        "[app:proxy-server]: unknown option node_timout; did you mean node_timeout?",
        "[app:proxy-server]: option object_chunk_size has no effect: the size of reads from storage "
        "servers is chosen by the data path",
        "[filter:caching]: unknown option tls_cafiel; did you mean tls_cafile?",
        "[filter:tempauth]: unknown option users_test_tester",
        "[filter:keystoneauth]: option is_admin has no effect: a user called like its project is not "
        "its owner; give it an operator role",
        "[proxy-server:policy:1]: unknown option recheck_account_existence",
    ]


def test_a_daemon_tells_of_its_own_section_and_the_default_one(write):
    path = write("[DEFAULT]\nx_y = 1\n[object-updater]\nconcurency = 1\n[object-replicator]\nx = 1\n")
    assert [line.split(" ", 1)[1] for line in unknown_options(str(path), only="object-updater")] == [
        "[DEFAULT]: unknown option x_y",
        "[object-updater]: unknown option concurency; did you mean concurrency?",
    ]


def test_shared_files_are_known(write):
    path = write(
        "[swift-hash]\nswift_hash_path_suffix = a\nsuffix = a\n"
        "[swift-constraints]\nmax_file_size = 5\nmax_filesize = 5\n[storage-policy:0]\nname = gold\n"
        "[memcache]\nmemcache_servers = a:1\nmemcache_server = a:1\n"
    )
    assert [line.split(" ", 1)[1].partition(";")[0] for line in unknown_options(str(path))] == [
        "[swift-hash]: unknown option suffix",
        "[swift-constraints]: unknown option max_filesize",
        "[memcache]: unknown option memcache_server",
    ]


def test_the_list_of_names_is_that_of_the_declarations():
    assert json.loads(KNOWN_FILE.read_text()) == json.loads(known_text())
