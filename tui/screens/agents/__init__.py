"""The screens for watching agents' runs."""
