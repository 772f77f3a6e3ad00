"""The screens, one module or package each with its stylesheet beside it."""
