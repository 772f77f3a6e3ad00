"""Chat models behind an endpoint, local or remote; only this package sends text to a model."""
