"""The pages of the review screen, in a module each or for several similar ones; see `tui/review_pages.py`."""
