"""Times of files beside a declared term, and numbers whose unit cannot be seconds."""

import pytest

from understudy.errors import DataError
from understudy.logs.reading import read_log

ROWS = "\n".join(f"s{n % 6},a{n % 3},2024-0{1 + n % 3}-10 10:00:00" for n in range(24))


def test_rows_outside_the_declared_term_are_counted(tmp_path):
    (tmp_path / "log.csv").write_text("learner,action,time\n" + ROWS)

    log = read_log(tmp_path / "log.csv", time="time", term="2024-01-01..2024-02-28", no_outcomes=True)

    assert any("Outside the declared term: 8 rows." in note for note in log.origin.notes)
    inside = read_log(tmp_path / "log.csv", time="time", term="2024-01-01..2024-03-31", no_outcomes=True)
    assert not any("Outside" in note for note in inside.origin.notes)


def test_milliseconds_are_not_taken_for_seconds(tmp_path):
    rows = "\n".join(f"s{n % 6},a{n % 3},{1_704_067_200_000 + 1000 * n}" for n in range(24))
    (tmp_path / "log.csv").write_text("learner,action,ts\n" + rows)

    with pytest.raises(DataError, match="numbers beyond the year 2100 if they count seconds") as error:
        read_log(tmp_path / "log.csv", time="ts", no_outcomes=True)

    assert error.value.fields["declare"] == {"time_unit": "ms"}
    log = read_log(tmp_path / "log.csv", time="ts", time_unit="ms", no_outcomes=True)
    assert str(log.time.min()).startswith("2024-01-01")
