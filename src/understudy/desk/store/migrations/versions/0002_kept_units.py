"""A column for the units that an earlier answer was rounded to.

They stay when the influences of its run are deleted because a learner withdrew. Before, they were written as JSON into
the column of those influences (`probes`), of runs without answers on shadows.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_runs = sa.table(
    "runs",
    sa.column("id", sa.BigInteger()),
    sa.column("probes", sa.LargeBinary()),
    sa.column("shadows", sa.LargeBinary()),
    sa.column("kept_units", sa.JSON(none_as_null=True)),
)


def upgrade() -> None:
    """Apply it."""
    op.add_column("runs", sa.Column("kept_units", sa.JSON(), nullable=True))
    connection = op.get_bind()
    found = sa.select(_runs.c.id, _runs.c.probes).where(
        _runs.c.shadows.is_(None), _runs.c.probes.is_not(None)
    )
    for row in connection.execute(found).all():
        # Influences are a zip file of arrays, and those of an answer that was too large to price stay what they are.
        if row.probes.startswith(b"{"):
            units = json.loads(row.probes)["units"]
            connection.execute(
                _runs.update().where(_runs.c.id == row.id).values(kept_units=units, probes=None)
            )


def downgrade() -> None:
    """Take it back."""
    connection = op.get_bind()
    found = sa.select(_runs.c.id, _runs.c.kept_units).where(_runs.c.kept_units.is_not(None))
    for row in connection.execute(found).all():
        if row.kept_units is not None:
            probes = json.dumps({"units": row.kept_units}).encode()
            connection.execute(_runs.update().where(_runs.c.id == row.id).values(probes=probes))
    op.drop_column("runs", "kept_units")
