"""The demo: a small library written for it, its tasks as archives, and a recorded attempt.

`library/` is data, a separate repository; gistpoint does not import it.
"""
