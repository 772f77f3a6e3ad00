"""Makes tasks from repositories: takes in their suites, corrupts functions, and proves that tests fail."""
