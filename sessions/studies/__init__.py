"""Opens a study's folder, and publishes, analyses, audits and erases its content."""
