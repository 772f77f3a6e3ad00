"""The formats of recorded runs: at most one in each module, and a folder for each family of formats."""
