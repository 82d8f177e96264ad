"""The reconstructor: rebuilds lost fragment archives and reverts misplaced ones."""
