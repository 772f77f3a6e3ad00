"""The environments of tasks: resolves, pins, fetches, builds and installs a repository's requirements."""
