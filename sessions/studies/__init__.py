"""The study folder: its log, what is published into it, erased from it and audited, and the runs of models in
it.
"""
