"""Files that run where the tested code runs: each stands alone and imports nothing of gistpoint."""
