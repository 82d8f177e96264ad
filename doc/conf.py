"""The documentation as a site: ``tox -e docs``, or ``sphinx-build -W doc build/site``."""

project = "swift"
author = "the authors of swift"
copyright = "2026, the authors of swift"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["man"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "swift"
