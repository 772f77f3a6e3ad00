"""From a repository to a task: intake of its suite, corruption and proof."""
