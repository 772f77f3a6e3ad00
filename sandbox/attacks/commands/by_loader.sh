# The loader starts any program that can be read, whether or not it may be executed; bash loads libraries.
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 /lib/ld-musl-*.so.1; do
  "$loader" "$PYTHON" code.py
  "$loader" "$OWN" code.py
  "$loader" /usr/bin/python3 code.py
done
for library in "$PREFIX"/lib/libpython3*.so* /usr/lib/*/libpython3*.so* /usr/local/lib/libpython3*.so*; do
  enable -f "$library" Py_BytesMain
  LD_PRELOAD=$library cat code.py >/dev/null
done
