"""The core: tasks, code, tools, attempts, agents, studies. It uses no terminal, process or network."""
