"""The place where untrusted code runs: workspaces, isolation backends, environments and test runs."""
