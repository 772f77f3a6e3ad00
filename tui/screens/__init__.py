"""The screens, in modules and packages, with their stylesheets."""
