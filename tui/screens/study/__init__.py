"""The screens of a study's participants and organiser."""
