"""The parts of recorded runs that formats share: bytes in bounded memory, steps, declarations of formats."""
