"""The pages of the review screen, listed in `tui/review_pages.py`. Similar pages share a module."""
