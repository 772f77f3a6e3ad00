"""The screens: one module or package each, next to its stylesheet."""
