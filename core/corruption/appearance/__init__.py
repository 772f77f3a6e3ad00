"""How a corruption looks to a reader: features of the text alone, and the score calibrated on blind readings."""
