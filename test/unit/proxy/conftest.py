"""The simulated cluster, for what only shows among servers."""

from test.sim.conftest import make_sim, rings, sim

__all__ = ["make_sim", "rings", "sim"]
