"""What people and the worker can do at the desk: every verb is one transaction with its line in the log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from understudy.desk.store.database import Database
from understudy.desk.store.settings import Settings


@dataclass(frozen=True)
class Desk:
    """An open desk."""

    settings: Settings
    database: Database

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The desk of a folder; its tables are brought up to date."""
        settings = Settings.read(folder)
        database = Database(settings.database_url)
        database.upgrade()
        return cls(settings, database)

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()
