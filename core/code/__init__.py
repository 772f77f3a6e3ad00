"""The code model: functions by `path::qualname`, their spans, and their replacement in place."""
