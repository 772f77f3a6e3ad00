# A short form of --compress-program: sort starts it on what does not fit into memory.
sort --co=python3 -S 40k lines.py
