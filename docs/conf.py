"""Sphinx settings: Markdown pages through MyST, and the public names from their docstrings."""

import aggregauss

project = "Aggregauss"
author = "The Aggregauss developers"
release = version = aggregauss.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Aggregauss"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
