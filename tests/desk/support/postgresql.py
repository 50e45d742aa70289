"""A PostgreSQL that lives as long as the tests. Imports the desk only when it is started."""

import os
import pwd
import subprocess
import tempfile
from pathlib import Path


def find_postgresql():
    """The folder of PostgreSQL's programs, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def without_rights():
    """Arguments that make a program run as nobody in particular: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Cluster:
    """A PostgreSQL of our own, reached through a socket in a folder that only we can open."""

    TEMPLATE = "desk_template"

    def __init__(self, programs, folder):
        self.programs, self.folder, self.made = programs, folder, 0

    def start(self):
        self._run(
            "initdb", "--auth=trust", "--username=desk", "--no-sync", "--encoding=UTF8", "-D", self._data
        )
        quick = "-c fsync=off -c full_page_writes=off -c max_connections=120 -c shared_buffers=32MB"
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} {quick}"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self.folder / "log", "-o", options, "start")
        from understudy.desk.store.database import Database

        self._say(f"CREATE DATABASE {self.TEMPLATE}")
        database = Database(self.url(self.TEMPLATE))
        database.upgrade()
        database.close()

    def stop(self):
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def url(self, name):
        return f"postgresql+psycopg://desk@/{name}?host={self.folder}"

    def new(self, template=TEMPLATE):
        """URL of a fresh database with the desk's tables."""
        self.made += 1
        name = f"desk_{os.getpid()}_{self.made}"
        self._say(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def empty(self, name):
        """Make a database empty."""
        self._say(f"DROP DATABASE {name} WITH (FORCE)")
        self._say(f"CREATE DATABASE {name}")

    @property
    def _data(self):
        return self.folder / "data"

    def _say(self, words):
        from sqlalchemy import create_engine, text

        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(words))
        engine.dispose()

    def _run(self, program, *arguments):
        # pg_ctl leaves a server behind that would keep our pipes open.
        with tempfile.TemporaryFile() as told:
            done = subprocess.run(
                [self.programs / program, *map(str, arguments)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                **without_rights(),
            )
            told.seek(0)
            assert done.returncode == 0, told.read().decode()
