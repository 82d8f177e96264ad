"""Base of every executable: HTTP server, workers, pipelines, daemons."""
