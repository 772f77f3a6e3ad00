"""Isolation backends; `base` defines their interface."""
