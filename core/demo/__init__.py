"""The demo: a small library written for it, its tasks as archives, and recorded attempts and runs.

`library/` is data, a separate repository; gistpoint does not import it.
"""
