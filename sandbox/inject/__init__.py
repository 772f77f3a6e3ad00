"""Files that run inside the target's interpreter; they import nothing but the standard library."""
