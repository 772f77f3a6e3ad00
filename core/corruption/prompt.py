"""The prompts of a model that corrupts or rewrites a function: templates, filled in."""

from __future__ import annotations

import re
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text

TEMPLATE = "breakpoint-appendix-b"
REWRITE_TEMPLATE = "rewrite-1"
_FIELDS = re.compile(r"\{(function_path|func_code|test_examples|self\.test_budget|self\.max_iterations)\}")


def template_text(name: str = TEMPLATE) -> str:
    """Return a template of a prompt. A template never changes: a changed wording gets a new name."""
    return files("gistpoint.core.corruption").joinpath("templates", f"{name}.md").read_text(encoding="utf-8")


def template_sha256(name: str = TEMPLATE) -> str:
    """Return the hash of a template, which the record of each loop contains."""
    return sha256_of_text(template_text(name))


def render_template(
    *,
    function_path: str,
    func_code: str,
    test_examples: str,
    test_budget: int,
    max_iterations: int,
    examples: str = "",
) -> str:
    """Return the prompt; braces in the values are left as they are.

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


def render_rewrite(path: str, qualname: str, file: str) -> str:
    """Return the prompt for rewriting a function; `file` is the text of its file without the body."""
    values = {"{function_path}": path, "{qualname}": qualname, "{file}": file.rstrip()}
    fields = re.compile("|".join(map(re.escape, values)))
    return fields.sub(lambda found: values[found.group()], template_text(REWRITE_TEMPLATE))
