"""Results of benchmarks and rows of data sets, each file with several runs, and the logs of their trials."""
