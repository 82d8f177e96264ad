"""Codecs without I/O: HTTP, chunks, byteranges, MIME, memcached."""
