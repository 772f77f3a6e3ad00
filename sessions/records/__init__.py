"""The parts of recorded runs that formats share: reading in bounded memory, steps, and declarations.

None of these modules knows a particular format, so that no list of formats by name is needed (decision 68).
"""
