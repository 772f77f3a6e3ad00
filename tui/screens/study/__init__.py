"""The screens for a study's participants and its organiser."""
