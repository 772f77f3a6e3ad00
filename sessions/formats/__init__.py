"""One module for each format that recorded runs come in, all behind one small protocol."""
