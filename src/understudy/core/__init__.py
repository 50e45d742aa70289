"""What every wing stands on: privacy, files, events, the engine, attacks in general, pages."""
