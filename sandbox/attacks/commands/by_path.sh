# Interpreters by their full paths, wherever a machine may have them.
for python in "$PYTHON" "$OWN" /usr/bin/python3 /usr/local/bin/python3 /opt/*/bin/python3 /home/*/.pyenv/shims/python3; do
  "$python" code.py
done
