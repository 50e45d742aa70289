"""Runs the migrations on the engine that the desk hands over, as a writer: two processes may start at once."""

from __future__ import annotations

from alembic import context

from understudy.desk.store.database import lock_out_writers
from understudy.desk.store.tables import Base

engine = context.config.attributes["engine"]
with engine.connect().execution_options(understudy_writes=True) as connection, connection.begin():
    lock_out_writers(connection)
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
