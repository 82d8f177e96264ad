"""Dashboards are drawn from the answers of a Prometheus."""

import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools.dashboards import expression_of, instances_of, legend_of, lines_of, number_text, picture

GRAFANA = Path(__file__).parents[2] / "etc/grafana"


@pytest.fixture
def prometheus():
    """A server with one series for every query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            values = [[time.time() - 10 * number, str(number)] for number in range(5, 0, -1)]
            response = {"data": {"result": [{"metric": {"device": "sdb"}, "values": values}]}}
            if self.path.startswith("/api/v1/label/"):
                response = {"data": ["10.0.0.1:18080", "proxy-2"]}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(response).encode())

        def log_message(self, *_words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_legends_numbers_and_variables_are_those_of_grafana():
    assert legend_of("{{a}} of {{ b }}", {"a": "x", "b": "y"}) == "x of y"
    assert legend_of("__auto", {"a": "x", "__name__": "n"}) == "a=x"
    texts = [number_text(*each) for each in ((0.5, "percentunit"), (2, "s"), (3, "reqps"), (math.nan, "s"))]
    assert texts == ["50 %", "2 s", "3/s", "-"]
    expression = 'rate(x{instance=~"$instance"}[$__rate_interval])'
    assert expression_of(expression, 60) == 'rate(x{instance=~".+"}[60s])'


def test_a_dashboard_becomes_a_picture(prometheus, tmp_path):
    ((legend, _times, values),) = lines_of(prometheus, "x", "{{device}}", 60)
    assert (legend, values) == ("sdb", [5, 4, 3, 2, 1])
    content = json.loads((GRAFANA / "proxy.json").read_text())
    assert instances_of(prometheus, content) == r"10\\.0\\.0\\.1:18080|proxy\\-2"
    assert instances_of(prometheus, {}) == ".+"
    path = picture(prometheus, GRAFANA / "overview.json", tmp_path / "images", 60, 60)
    assert path.name == "overview.png"
    assert path.read_bytes().startswith(b"\x89PNG")
