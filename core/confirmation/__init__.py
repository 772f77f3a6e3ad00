"""Confirmation of a pass by running the submitted functions apart from the tests (decision 113)."""
