# A command of sed's own language starts a program; another one writes a file.
command sed -n '1e python3 code.py' code.py
command sed -n "1e $PYTHON code.py" code.py
