"""Docker: one container per run on a local or remote engine, or on Podman's service."""
