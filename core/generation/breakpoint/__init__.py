"""Records of the public Breakpoint data set, made into tasks."""
