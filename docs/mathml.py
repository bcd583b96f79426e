"""Formulas as MathML, made when the pages are built: browsers draw them, and nothing is loaded."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number


def to_mathml(latex: str, *, block: bool) -> str:
    """Return a formula of LaTeX as MathML."""
    latex = latex.strip()
    if block and (r"\\" in latex or "&" in latex) and not _is_array(latex):
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    made = convert(latex, display="block" if block else "inline")
    left = re.findall(r"\\[a-zA-Z]+", re.sub(r"<annotation.*?</annotation>", "", made))
    if left:
        raise ValueError(f"no MathML for {sorted(set(left))} in {latex!r}")
    return made


def _is_array(latex: str) -> bool:
    """Say whether the line breaks of a formula stand inside an environment of its own."""
    bare = re.sub(r"\\begin\{(\w+)\*?\}.*?\\end\{\1\*?\}", "", latex, flags=re.DOTALL)
    return r"\\" not in bare and "&" not in bare


def visit_inline(self, node):
    self.body.append(to_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(self, node):
    number = ""
    if node["number"]:
        said = get_node_equation_number(self, node)
        number = f'<span class="eqno">({said})</span>'
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    self.body.append(f'<div class="math"{anchor}>{number}')
    # Formulas of several paragraphs are several formulas, one below the other.
    parts = [part for part in re.split(r"\n\s*\n", node.astext()) if part.strip()]
    self.body.extend(to_mathml(part, block=True) for part in parts)
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
