"""`gistpoint mcp`: one attempt at one task, for a client of the Model Context Protocol. Needs the extra
`mcp`.
"""
