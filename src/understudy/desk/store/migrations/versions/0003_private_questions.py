"""Columns for private questions: what is public about a data set, and what was asked and is guaranteed."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply it."""
    op.add_column("data_sets", sa.Column("schema", sa.JSON(), nullable=True))
    op.add_column("runs", sa.Column("private", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Take it back."""
    op.drop_column("runs", "private")
    op.drop_column("data_sets", "schema")
