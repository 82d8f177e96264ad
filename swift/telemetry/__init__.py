"""Output about a process: log, access log, statsd, metrics."""
