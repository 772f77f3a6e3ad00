"""The pages of the review screen, one module each or for several alike; `tui/review_pages.py` lists them."""
