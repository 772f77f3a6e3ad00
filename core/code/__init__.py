"""The code model: functions by `path::qualname`, their positions, and their replacement in place."""
