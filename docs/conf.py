"""Configuration of the documentation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from numpydoc import xref
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "src"), str(HERE)]

import links  # noqa: E402

import lssvm  # noqa: E402

project = "lssvm"
author = "the lssvm developers"
copyright = "2026, the lssvm developers"
version = release = lssvm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "links",
    "mathml",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = f"lssvm {version}"
html_theme_options = {
    "navigation_depth": 3,
    "show_toc_level": 2,
    "navbar_center": [],
    "show_prev_next": False,
    # Pages with wide tables have no list of their sections.
    "secondary_sidebar_items": {"**": ["page-toc"], "choosing": [], "papers": []},
}
html_sidebars = {"index": [], "**": ["globaltoc.html"]}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False

# The API pages: one per package, made from its __all__.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
# Types of signatures and of parameters are links to the pages of our own classes.
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
xref.DEFAULT_LINKS.clear()  # those of Python and NumPy, which need a network
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but for these names types are words, such as "or a list of them"
numpydoc_xref_aliases = links.PAGES
html_math_renderer = "mathml"
math_number_all = False


class _KeyLabels(BaseLabelStyle):
    """Label an entry of the bibliography with its key, as the docstrings cite it."""

    def format_labels(self, sorted_entries):
        return (entry.key for entry in sorted_entries)


class _KeyStyle(PlainStyle):
    default_label_style = _KeyLabels


register_plugin("pybtex.style.formatting", "keys", _KeyStyle)
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "keys"

_KEYS = "|".join(re.findall(r"^@\w+\{(\w+),", (HERE / "references.bib").read_text(), re.MULTILINE))
_CITATION = re.compile(rf"\[({_KEYS})(, [^\]]*)?\]_?")


def _link_citations(app, what, name, obj, options, lines):
    """Turn ``[Key]`` and ``[Key, eq. (n)]`` of a docstring into links to the references."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = _CITATION.sub(r"[:cite:label:`\1`\2]", line)


def _leave_out(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn's base classes bring: its own pages describe them.

    Those with which all displays draw are for who writes another display.
    """
    inherited = (getattr(obj, "__module__", None) or "").startswith(
        ("sklearn.", "lssvm.plots.base")
    )
    return True if inherited or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    app.connect("autodoc-process-docstring", _link_citations, priority=900)
    app.connect("autodoc-skip-member", _leave_out)


# The gallery: every examples/plot_*.py is run and shown with its pictures.
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(^|[\\/])(?!plot_)\w+\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts from elsewhere
}
