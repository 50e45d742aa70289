"""The desk's folder: its settings, its secret and where its database is."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from understudy.core.files.documents import contract, read_toml
from understudy.errors import DataError, UsageError

SETTINGS = "desk.toml"
SECRET = "secret.key"
POLICY = "policy.toml"
DATABASE = "desk.sqlite"
LEDGER = "understudy.ledger"


@dataclass(frozen=True)
class Mail:
    """How notices are sent; without a host none are."""

    __pydantic_config__: ClassVar = contract()

    host: str = ""
    port: int = 587
    sender: str = ""
    user: str = ""
    password_file: str = ""
    encrypted: bool = True
    """STARTTLS; off only for a server on this machine."""


@dataclass(frozen=True)
class SingleSignOn:
    """An OpenID Connect provider; without an issuer there is none."""

    __pydantic_config__: ClassVar = contract()

    issuer: str = ""
    client_id: str = ""
    secret_file: str = ""
    name: str = "single sign-on"


@dataclass(frozen=True)
class DeskFile:
    """What `desk.toml` says."""

    __pydantic_config__: ClassVar = contract()

    title: str = "Validation desk"
    database: str = ""
    """URL; a file in the folder by default."""
    address: str = "http://127.0.0.1:8765"
    """Where people reach the desk: for links, and cookies are for https only if it begins so."""
    mail: Mail = field(default_factory=Mail)
    single_sign_on: SingleSignOn = field(default_factory=SingleSignOn)


@dataclass(frozen=True, kw_only=True)
class Settings(DeskFile):
    """What `desk.toml` says, with the folder that it lies in and the desk's secret."""

    folder: Path
    secret: str = field(repr=False)

    @property
    def database_url(self) -> str:
        """Of the database."""
        return self.database or f"sqlite:///{(self.folder / DATABASE).resolve()}"

    def keyed(self, purpose: str, content: bytes | str) -> str:
        """A hash that only this desk can compute: for tokens, withdrawn learners and the data itself."""
        message = content.encode() if isinstance(content, str) else content
        key = hmac.digest(bytes.fromhex(self.secret), purpose.encode(), "sha256")
        return hmac.digest(key, message, "sha256").hex()

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """The settings in a desk's folder."""
        path = folder / SETTINGS
        if not path.is_file():
            raise UsageError(
                f"there is no desk in {folder}.",
                hint="make one with `understudy desk init`, or give the folder of your desk.",
                code="no-desk",
                settings=("desk",),
            )
        found = read_toml(path, DeskFile)
        try:
            secret = (folder / SECRET).read_text(encoding="ascii").strip()
            bytes.fromhex(secret)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{SECRET} of the desk cannot be read ({type(error).__name__}).",
                hint="restore the folder from a backup.",
            ) from None
        return cls(**vars(found), folder=folder, secret=secret)

    @classmethod
    def write(cls, folder: Path, title: str, *, database: str = "", address: str = "") -> Settings:
        """A new folder with settings and a new secret, for its owner only."""
        if (folder / SETTINGS).exists():
            raise UsageError(f"there is a desk in {folder} already.", hint="choose another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        lines = [f"title = {_quoted(title)}"]
        if database:
            lines.append(f"database = {_quoted(database)}")
        lines.append(f"address = {_quoted(address or cls.address)}")
        descriptor = os.open(folder / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        (folder / SETTINGS).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cls.read(folder)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
