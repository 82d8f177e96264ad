"""Run wrk, the load generator: a Lua script per workload, and its parsed figures.

wrk is written by neither side of a comparison. It refuses to know what is compared.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from swift.base.errors import ConfigError

#: Placeholders are filled per workload; requests are made once per thread where possible.
_SCRIPT = """
local ffi = require("ffi")
ffi.cdef[[ typedef struct { long s; long us; } when_t; int gettimeofday(when_t *, void *); ]]
local moment = ffi.new("when_t")
local function now()
  ffi.C.gettimeofday(moment, nil)
  return tonumber(moment.s) + tonumber(moment.us) / 1e6
end
local the_thread
function setup(thread)
  the_thread = thread
end
local method, token, base, size, count, order = %(fields)s
local body = size > 0 and string.rep("x", size) or nil
local next_number = 0
local ready = {}
function init(args)
  math.randomseed(7919)
  headers = {["X-Auth-Token"] = token}
  if method == "PUT" then headers["Content-Type"] = "application/octet-stream" end
  for name, value in pairs(%(headers)s) do headers[name] = value end
  if order == "cycling" then
    for n = 0, count - 1 do ready[n] = wrk.format(method, base .. n, headers, body) end
  end
  began, ended = now(), now()
end
function request()
  -- Made as soon as an answer is complete. A response function would tell the same, but wrk then keeps whole
  -- bodies for it: 80 ms between two answers of 100 MiB.
  ended = now()
  local n = next_number
  if order == "random" then n = math.random(0, count - 1) else next_number = n + 1 end
  if order == "cycling" then return ready[n %% count] end
  if order == "counting" and count > 1 and next_number >= count then wrk.thread:stop() end
  return wrk.format(method, base .. (order == "fixed" and "" or string.format("%%d", n)), headers, body)
end
function done(summary, latency, requests)
  local e = summary.errors
  -- wrk sleeps its whole duration; a counted load ends earlier, and a slow one has an unfinished request.
  local seconds = the_thread:get("ended") - the_thread:get("began")
  io.write(string.format(
    "\\n@@{\\"requests\\":%%d,\\"seconds\\":%%.6f,\\"bytes\\":%%d,"
    .. "\\"p50_ms\\":%%.4f,\\"p99_ms\\":%%.4f,\\"max_ms\\":%%.4f,\\"bad\\":%%d}\\n",
    summary.requests, seconds, summary.bytes, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3,
    e.status + e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """One wrk run: request, connections, duration."""

    method: str
    #: URL path; a number is appended unless ``order`` is fixed.
    base: str
    concurrency: int
    seconds: float
    body_bytes: int = 0
    #: random: 0…count-1; counting: ever new numbers, ending at a count over 1; fixed: the same URL; cycling:
    #: 0…count-1 in turn, all requests made beforehand (wrk needs 0.1 s to make one of 100 MiB).
    order: str = "random"
    count: int = 1
    #: Further headers of every request.
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Measured:
    """The figures that wrk reported."""

    requests: int
    seconds: float
    bytes: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    bad: int

    @property
    def per_second(self) -> float:
        """Return the requests per second."""
        return self.requests / self.seconds if self.seconds else 0.0


def check_wrk() -> None:
    """Raise ``ConfigError`` when wrk is not installed."""
    if shutil.which("wrk") is None:
        raise ConfigError("wrk is missing; install the system package wrk")


def run_wrk(host: str, token: str, load: Load) -> Measured:
    """Run one load against ``http://host``; raises ``ConfigError`` when wrk fails."""
    fields = ", ".join(
        json.dumps(value)
        for value in (load.method, token, load.base, load.body_bytes, load.count, load.order)
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        headers = ", ".join(f"[{json.dumps(name)}]={json.dumps(value)}" for name, value in load.headers)
        script.write(_SCRIPT % {"fields": fields, "headers": f"{{{headers}}}"})
        script.flush()
        command = [
            "wrk",
            "-t1",
            f"-c{load.concurrency}",
            f"-d{max(1, round(load.seconds))}s",
            "--timeout",
            "120s",
            "-s",
            script.name,
            f"http://{host}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("@@"):
            return Measured(**json.loads(line[2:]))
    raise ConfigError(f"wrk failed: {(done.stderr or done.stdout).strip()[:400]}")
