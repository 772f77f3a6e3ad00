"""Files that run where the tested code runs: each stands alone, imports nothing of gistpoint and is read as text here."""
