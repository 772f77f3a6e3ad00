"""Who calls whom: a static call graph of Python sources, joined with the calls that a run showed."""
