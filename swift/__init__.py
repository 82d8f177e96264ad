"""An object store that speaks OpenStack Swift's API, formats and protocols.

Importing this package, or any module of it, does nothing: configuration is read and services are
composed only by ``swift.compose`` and the executables in ``swift.cli``.
"""

__version__ = "0.2.0"

#: The name in the package index. The name of the import package belongs to OpenStack Swift there.
DISTRIBUTION = "swift-object-store"
