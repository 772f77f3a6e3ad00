"""The study: its declaration, its log, who attempts which task,
and the rows that its numbers are computed from.
"""
