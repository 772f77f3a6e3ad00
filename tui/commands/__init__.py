"""The commands of the command line, a module for each subject, loaded when one of them is called.

Without a terminal they print text.
"""
