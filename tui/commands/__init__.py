"""The commands of the command line. Each module contains those on a subject, and is imported when called.

Without a terminal, commands print text instead of opening screens.
"""
