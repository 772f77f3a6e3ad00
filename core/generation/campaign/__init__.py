"""Tasks by the hundred: candidates in an order that a seed decides, each tried, proven and counted."""
