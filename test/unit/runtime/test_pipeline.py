"""Pipelines: what is inserted where, and whose value an option has (proxy.md §18, cli-and-config.md §1)."""

import pytest

from swift.base.errors import ConfigError
from swift.config.declared import filter_order, filters
from swift.config.files import read_section, read_sections
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.runtime.pipeline import read_pipeline, server_of

FILTERS = (
    *("catch_errors", "gatekeeper", "healthcheck", "proxy_logging"),
    *("memcache", "tempauth", "copy", "dlo", "versioned_writes", "listing_formats", "tempurl", "formpost"),
    *("bulk", "staticweb", "account_quotas", "ratelimit", "domain_remap", "cname_lookup", "container_sync"),
)


def pipeline_of(folder, names):
    lines = [f"[pipeline:main]\npipeline = {' '.join([*names, 'proxy-server'])}\n"]
    lines += [f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in FILTERS]
    # A section name of its own: presence is judged by the entry point.
    lines.append("[filter:proxy-logging]\nuse = egg:swift#proxy_logging\n")
    lines.append("[app:proxy-server]\nuse = egg:swift#proxy\n")
    path = folder / "proxy-server.conf"
    path.write_text("\n".join(lines))
    return read_pipeline(str(path), {})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("", "catch_errors gatekeeper listing_formats copy dlo versioned_writes"),
        ("catch_errors", "catch_errors gatekeeper listing_formats copy dlo versioned_writes"),
        ("healthcheck", "catch_errors gatekeeper listing_formats copy dlo versioned_writes healthcheck"),
        (
            "catch_errors healthcheck proxy-logging memcache tempauth proxy-logging",
            "catch_errors gatekeeper healthcheck proxy_logging memcache listing_formats tempauth copy dlo "
            "versioned_writes proxy_logging",
        ),
        (
            "catch_errors gatekeeper healthcheck proxy-logging memcache listing_formats tempauth dlo",
            "catch_errors gatekeeper healthcheck proxy_logging memcache listing_formats tempauth copy dlo "
            "versioned_writes",
        ),
        (
            "healthcheck catch_errors",
            "gatekeeper healthcheck catch_errors listing_formats copy dlo versioned_writes",
        ),
    ],
)
def test_missing_filters_go_to_their_places(tmp_path, given, names):
    pipeline = pipeline_of(tmp_path, given.split())
    pipeline.insert_required({})
    assert " ".join(pipeline.names) == names


def test_nothing_is_inserted_twice(tmp_path):
    pipeline = pipeline_of(tmp_path, [])
    assert pipeline.insert_required({})
    assert pipeline.insert_required({}) == []


RECOMMENDED = [
    *("catch_errors", "gatekeeper", "healthcheck", "proxy-logging", "memcache", "cname_lookup"),
    *("domain_remap", "listing_formats", "container_sync", "bulk", "tempurl", "ratelimit", "formpost"),
    *("tempauth", "staticweb", "account_quotas", "dlo", "proxy-logging"),
]


def test_the_recommended_order_is_right(tmp_path):
    pipeline_of(tmp_path, RECOMMENDED).check_order()


def test_the_positions_of_filters_keep_every_rule_of_order():
    places = {name: each.position for name, each in filters().items()}
    known = [pair for pair in filter_order() if set(pair) <= places.keys()]
    assert len(known) > 30
    assert [(left, right) for left, right in known if places[left] >= places[right]] == []


@pytest.mark.parametrize(("left", "right"), [pair for pair in filter_order() if set(pair) <= set(FILTERS)])
def test_a_wrong_order_is_an_error_whose_right_one_can_be_pasted(tmp_path, left, right):
    wrong = [name for name in RECOMMENDED if name != left]
    wrong.insert(wrong.index(right) + 1, left)
    with pytest.raises(ConfigError, match=f"{left} must come before {right}|change the order") as raised:
        pipeline_of(tmp_path, wrong).check_order()
    advice = str(raised.value).partition("change the order to: ")[2].split()
    assert sorted(advice) == sorted([*wrong, "proxy-server"])
    assert advice.index(left) < advice.index(right)
    pipeline_of(tmp_path, advice[:-1]).check_order()


@pytest.mark.parametrize("missing", ["tempauth", "gatekeeper", "memcache"])
def test_what_is_not_there_is_in_no_wrong_place(tmp_path, missing):
    pipeline_of(tmp_path, [name for name in RECOMMENDED if name != missing]).check_order()


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "p.conf"
    path.write_text("[pipeline:main]\npipeline = nothing\n")
    with pytest.raises(ConfigError, match="p.conf"):
        read_pipeline(str(path), {})
    path.write_text("no section")
    with pytest.raises(ConfigError, match="p.conf"):
        read_pipeline(str(path), {})
    with pytest.raises(ConfigError, match="unable to locate"):
        read_pipeline(str(tmp_path / "absent.conf"), {})


WORKED = """
[DEFAULT]
log_name = dflt
other = d2
[app:main]
paste.app_factory = test.unit.runtime.test_pipeline:app_factory
log_name = app
set other = s2
odd = 100% of %(other)s %x
"""


def app_factory(global_conf, **local_conf):
    return {**global_conf, **local_conf}


def test_paste_sections_override_defaults_only_with_set(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text(WORKED)
    conf = read_pipeline(str(path), {}).create()
    assert (conf["log_name"], conf["other"], conf["odd"]) == ("dflt", "s2", "100% of d2 %x")


def test_plain_sections_take_their_own_value(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text(WORKED)
    conf = read_section(path, "app:main")
    assert (conf["log_name"], conf["other"], conf["set other"]) == ("app", "d2", "s2")
    assert read_section(path, "absent") == {"log_name": "dflt", "other": "d2"}


def test_a_directory_of_files_is_merged_in_order(tmp_path):
    folder = tmp_path / "a.conf.d"
    folder.mkdir()
    (folder / "1.conf").write_text("[x]\na = 1\nB = 1\n")
    (folder / "2.conf").write_text("[x]\na = 2\n")
    (folder / ".3.conf").write_text("[x]\na = 3\n")
    (folder / "4.txt").write_text("[x]\na = 4\n")
    for path in (folder, tmp_path / "a.conf"):
        assert read_sections(path)["x"] == {"a": "2", "B": "1"}


def test_whole_pipelines_may_be_loaded_from_a_directory(tmp_path):
    folder = tmp_path / "p.conf.d"
    folder.mkdir()
    (folder / "1.conf").write_text(WORKED)
    assert read_pipeline(str(tmp_path / "p.conf"), {}).create()["other"] == "s2"


FOREIGN = """
[pipeline:main]
pipeline = catch_errors theirs gatekeeper app
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:theirs]
paste.filter_factory = test.unit.runtime.test_pipeline:foreign_factory
word = hello
[filter:gatekeeper]
use = egg:swift#gatekeeper
[app:app]
paste.app_factory = test.unit.runtime.test_pipeline:answering_factory
"""


def foreign_factory(global_conf, **local_conf):
    """A filter as third parties write them: plain WSGI."""

    def make(app):
        def theirs(environ, start_response):
            environ["HTTP_X_WORD"] = local_conf["word"]
            return app(environ, start_response)

        return theirs

    return make


def answering_factory(global_conf, **local_conf):
    class App:
        def handle(self, request):
            if request.raw_path == "/refused":
                raise HTTPError(409, "no")
            headers = {"x-saw": request.headers["x-word"], "x-object-sysmeta-a": "1"}
            return Response(200, headers, request.env["swift.trans_id"].encode())

    return App()


def test_a_foreign_filter_stands_between_ours(tmp_path):
    path = tmp_path / "p.conf"
    path.write_text(FOREIGN)
    handle = read_pipeline(str(path), {}).create().handle
    response = handle(Request("GET", "/v1/a"))
    assert (response.status, response.headers["x-saw"]) == (200, "hello")
    assert response.read_body().decode() == response.headers["x-trans-id"]
    assert "x-object-sysmeta-a" not in response.headers
    refused = handle(Request("GET", "/refused"))
    assert (refused.status, refused.read_body()) == (409, b"no")
    assert "x-trans-id" in refused.headers


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[pipeline:main]", "[pipelin:main]", "there is no [pipeline:main]; did you mean pipelin:main?"),
        ("pipeline = ", "pipelin = ", "[pipeline:main] has no option pipeline; did you mean pipelin?"),
        (
            "= cache",
            "= cahce",
            "[pipeline:main] names cahce, and there is no [filter:cahce]; did you mean cache?",
        ),
        (
            "proxy-server\n",
            "proxy-sever\n",
            "[pipeline:main] names proxy-sever, and there is no [app:proxy-sever]; "
            "did you mean proxy-server?",
        ),
        (
            "#memcache",
            "#memcach",
            "[filter:cache] use = egg:swift#memcach: the package swift has no filter memcach; "
            "did you mean memcache?",
        ),
        (
            "swift#memcache",
            "nowhere#memcache",
            "[filter:cache] use = egg:nowhere#memcache: the package nowhere is not installed for ",
        ),
        (
            "#proxy",
            "#prxy",
            "[app:proxy-server] use = egg:swift#prxy: the package swift has no application prxy; "
            "did you mean proxy?",
        ),
    ],
)
def test_a_flaw_of_a_pipeline_is_told_in_the_words_of_its_file(tmp_path, old, new, told):
    text = (
        "[pipeline:main]\npipeline = cache proxy-server\n[filter:cache]\nuse = egg:swift#memcache\n"
        "[app:proxy-server]\nuse = egg:swift#proxy\n"
    )
    path = tmp_path / "proxy-server.conf"
    path.write_text(text)
    assert read_pipeline(str(path), {}).names == ["memcache"]
    assert server_of(str(path)) == "proxy-server"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        read_pipeline(str(path), {})
    assert str(refused.value).startswith(f"{path}: {told}")
