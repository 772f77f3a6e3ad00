# find starts a program for each file.
find . -name code.py -exec python3 {} \; -execdir "$PYTHON" {} \;
