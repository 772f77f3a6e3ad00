"""The screens for reviewing recorded runs step by step."""
