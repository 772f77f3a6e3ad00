"""The files of the bundle that are not modules of gistpoint; they run with Python 3.9 or newer."""
