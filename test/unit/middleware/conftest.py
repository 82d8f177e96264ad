"""The simulated cluster for filters that are tested over one."""

from test.sim.conftest import make_sim, make_slo, rings, s3, sim, slo

__all__ = ["make_sim", "make_slo", "rings", "s3", "sim", "slo"]
