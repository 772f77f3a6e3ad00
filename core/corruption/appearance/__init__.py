"""The appearance of a corruption: features of its text, and a score calibrated on blind readings.

The public names are in this module; the modules inside are private.
"""

from gistpoint.core.corruption.appearance.score import GlanceScorer, GlanceWeights, Weight, glance_weights

__all__ = ["GlanceScorer", "GlanceWeights", "Weight", "glance_weights"]
