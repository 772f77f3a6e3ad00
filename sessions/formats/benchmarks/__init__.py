"""Benchmark results and data-set rows, in files with several runs, and the logs of benchmark trials."""
