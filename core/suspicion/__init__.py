"""Finds code in a submission that may influence its judge: a reason to read it, not a proof."""
