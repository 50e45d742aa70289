"""The small version of the coverage of exams with points and with discriminations."""

from reproductions.dp_rasch.points import DiscriminationsCell, PointsCell, measure


def test_each_cell_has_its_row_and_repeats_with_its_seed():
    cells = (PointsCell(200, 8, (2, 4), 8, 1.0), DiscriminationsCell(400, 8, 8, 0.3))
    rows = measure(cells, 2, seed=3)
    assert rows == measure(cells, 2, seed=3)
    assert [len(row) for row in rows] == [6, 7]
    assert rows[0][:2] == ["200, 8, 2 or 4", "8"]
    # Sixteen intervals of 95 %: if they were independent, 60 % or fewer would hold once in a hundred thousand times.
    assert float(rows[0][4].split()[0]) > 60
    assert float(rows[0][5]) > 0.9
