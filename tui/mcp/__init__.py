"""`gistpoint mcp`: one attempt at one task, for a client of the Model Context Protocol.

It needs the extra `mcp`.
"""
