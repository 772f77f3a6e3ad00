"""Single commands of a codebase: how one is written, and the port that runs it, in its tree or with one file
alone.
"""
