"""The verbs of swift-load: what is wrong is found before the run, and what was measured is written."""

import http.server
import json
import os
import threading

import pytest

from swift.cli.load import main

TEXT = """
name = "mine"
[objects]
containers = 1
per_container = 2
[[phase]]
kind = "init"
[[phase]]
kind = "main"
clients = 1
operations = 3
mix = {head = 1}
[[phase]]
kind = "cleanup"
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = self.server.body if self.command != "HEAD" else b""
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer


@pytest.fixture
def store():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.status, server.body = 200, b"[]"
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    for name in [name for name in os.environ if name.startswith(("ST_", "AWS_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "w.toml").write_text(TEXT)

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    call.root, call.workload = tmp_path, tmp_path / "w.toml"
    return call


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name the cluster: --auth with --user and --key, --storage-url, or --s3"),
        (["--s3", "http://127.0.0.1:1"], "--s3 needs --access-key and --secret-key"),
        (["--storage-url", "ftp://h/v1/a"], "not an http or https URL"),
        (["--storage-url", "http://h/v1/a", "--json", "/nonexistent/r.json"], "cannot be written"),
        (["--storage-url", "http://h/v1/a", "--csv", "{root}"], "cannot be written"),
        (["--storage-url", "http://h/v1/a", "--price", "{root}/none.toml"], "none.toml"),
    ],
)
def test_what_is_wrong_is_one_line_before_anybody_is_asked(run, words, text):
    code, out, err = run("run", run.workload, *(word.format(root=run.root) for word in words))
    assert code == 1 and out == "" and text in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "price", ["", "per_hour = 0", "per_hour = true", "per_hour = 'x'", "per_hour = nan", "[", "\x00"]
)
def test_a_price_is_a_number_above_zero(run, price):
    (run.root / "p.toml").write_text(price)
    code, _out, err = run("run", run.workload, "--price", run.root / "p.toml")
    assert code == 1 and "p.toml" in err and err.count("\n") == 1


@pytest.mark.parametrize("status", [401, 404, 503])
def test_a_store_that_refuses_is_told_with_its_status(run, store, status):
    store.status = status
    code, _out, err = run("run", run.workload, "--storage-url", f"{store.url}/v1/a")
    assert code == 1 and f"answered {status}" in err


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "SignatureDoesNotMatch"])
def test_keys_that_s3_does_not_know_are_told(run, store, code):
    store.status, store.body = 403, f"<Error><Code>{code}</Code></Error>".encode()
    words = ["--s3", store.url, "--access-key", "a", "--secret-key", "s"]
    done, _out, err = run("run", run.workload, *words)
    assert done == 1 and "are both keys right?" in err


@pytest.mark.parametrize("content", [b"", b"[[phase]]", b"\xff", b"name = 7", b"["])
def test_a_file_that_is_no_workload_is_refused(run, content):
    (run.root / "bad.toml").write_bytes(content)
    code, _out, err = run("run", run.root / "bad.toml", "--storage-url", "http://h/v1/a")
    assert code == 1 and "bad.toml" in err and "Traceback" not in err


def test_built_in_names_are_known_in_any_case_and_others_are_told(run):
    assert run("show", "SMLREAD")[1] == run("show", "SmlRead")[1] != ""
    code, _out, err = run("show", "nothing")
    assert code == 1 and "nothing: no built-in workload" in err
    code, _out, err = run("show", run.root)
    assert code == 1 and "no file that can be read" in err


def test_runs_that_have_nothing_in_common_cannot_be_compared(run):
    for name in ("a", "b"):
        saved = {
            "workload": name,
            "description": "",
            "interrupted": False,
            "rows": [],
            "costs": [],
            "phases": [],
        }
        (run.root / f"{name}.json").write_text(json.dumps(saved))
    code, _out, err = run("compare", run.root / "a.json", run.root / "b.json")
    assert code == 1 and "no operation of a phase in common" in err
    assert run("compare", run.root / "a.json", run.root / "none.json")[0] == 1


def test_what_is_no_xml_of_cosbench_is_not_imported(run):
    (run.root / "w.xml").write_text("<workload")
    code, out, err = run("import", run.root / "w.xml")
    assert code == 1 and out == "" and "w.xml" in err
