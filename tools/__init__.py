"""Tools of the developers: never part of the package."""
