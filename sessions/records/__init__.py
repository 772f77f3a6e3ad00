"""The parts of recorded runs that all formats share: bytes in bounded memory, steps, declarations of formats."""
