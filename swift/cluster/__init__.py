"""Talking to other nodes: connections, placement, quorum, fan-out, memcached."""
