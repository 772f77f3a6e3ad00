"""Studies on disk: their folders, participation, publication, analysis, audits, simulation and erasure."""
