"""The panel: authors who see a private summary and write generators, none of them a record."""
