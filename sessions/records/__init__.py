"""The parts of recorded runs that formats share: reading in bounded memory, steps, and declarations.

Only `databases`, `folders` and `requests` know what particular programs write, so that no list of formats by
name is needed (decision 68).
"""
