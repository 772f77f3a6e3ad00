"""The prompt of a corrupting model: the template of the paper, filled in."""

from __future__ import annotations

import re
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text

TEMPLATE = "breakpoint-appendix-b"
_FIELDS = re.compile(r"\{(function_path|func_code|test_examples|self\.test_budget|self\.max_iterations)\}")


def template_text() -> str:
    """Return the template of the prompt."""
    return (
        files("gistpoint.core.corruption").joinpath("templates", f"{TEMPLATE}.md").read_text(encoding="utf-8")
    )


def template_sha256() -> str:
    """Return the hash of the template, which every record of a corruption contains."""
    return sha256_of_text(template_text())


def render_template(
    *,
    function_path: str,
    func_code: str,
    test_examples: str,
    test_budget: int,
    max_iterations: int,
    examples: str = "",
) -> str:
    """Return the prompt; braces in the values have no meaning.

    `examples` are added after the template.
    """
    values = {
        "function_path": function_path,
        "func_code": func_code,
        "test_examples": test_examples,
        "self.test_budget": str(test_budget),
        "self.max_iterations": str(max_iterations),
    }
    text = _FIELDS.sub(lambda found: values[found.group(1)], template_text())
    return f"{text.rstrip()}\n\n{examples}\n" if examples else text
