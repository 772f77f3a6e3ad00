"""The commands of the command line, in a module for each subject, which is imported when needed.

Without a terminal, commands print text instead of opening screens.
"""
