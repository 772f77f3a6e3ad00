"""Where untrusted code runs: workspaces, isolation backends, environments, test runs."""
