"""What a submission brings in that reaches for its judge: no proof of anything, but a reason to read it."""
