"""What a process tells the outside: log, access log, statsd, metrics."""
