"""What the product is: tasks, code model, tools, attempts, scoring. Knows no terminal, no process, no network."""
