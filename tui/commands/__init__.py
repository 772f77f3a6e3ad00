"""The commands of the command line, one module each; all of them work as text where there is no terminal."""
