"""Look at ring files twice a second instead of every 15 seconds, in all processes of a world that do.

What reads no ring does not import it for this.
"""

import sys
from importlib.machinery import PathFinder

PAUSE_S = 0.5


class _RingFinder:
    """Finds the module of rings, and shortens its pause once it is loaded."""

    @staticmethod
    def find_spec(name, path, _target=None):
        if name != "swift.ring.ring":
            return None
        spec = PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: _shorten(load, module)
        return spec


def _shorten(load, module):
    load(module)
    assert module.RELOAD_INTERVAL_S > PAUSE_S
    module.RELOAD_INTERVAL_S = PAUSE_S
    defaults = module.Ring.__init__.__kwdefaults__
    assert "reload_interval_s" in defaults
    defaults["reload_interval_s"] = PAUSE_S


sys.meta_path.insert(0, _RingFinder)
