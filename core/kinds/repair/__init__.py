"""Repairs, in which removed or corrupted functions are replaced until the tests pass again."""
