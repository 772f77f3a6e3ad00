# A program that is made there: a script with an interpreter's name in it, a copy of the interpreter itself.
for folder in . /tmp /dev/shm "$HOME" /dev; do
  printf '#!%s\n%s\n' "$PYTHON" "$(<code.py)" >"$folder/made"
  cat "$PYTHON" >"$folder/python"
  chmod +x "$folder/made" "$folder/python"
  "$folder/made"
  "$folder/python" code.py
  /lib64/ld-linux-x86-64.so.2 "$folder/python" code.py
done
