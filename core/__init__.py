"""The core of the product: tasks, code model, tools, attempts, scoring. Uses no terminal, process or network."""
