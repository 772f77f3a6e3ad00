"""The parts of recorded runs that formats share: bytes in bounded memory, steps, declarations of formats.

They know no format, so that nobody needs a list of formats by name (decision 68).
"""
