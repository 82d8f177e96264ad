"""What every executable runs on: HTTP server, workers, pipelines, daemons."""
