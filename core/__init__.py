"""The core: tasks, code model, tools, attempts, scoring. It uses no terminal, process or network."""
