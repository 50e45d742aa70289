"""A desk over HTTP: which data set is meant."""

import pytest

from understudy.desk.researcher.client import data_set_named
from understudy.errors import UsageError


def test_data_is_called_by_its_title_or_its_name():
    known = [
        {"name": "3F2A", "title": "Autumn  term"},
        {"name": "77bb", "title": "Spring"},
        {"name": "88cc", "title": "Spring"},
    ]
    assert {data_set_named(known, one) for one in ("3f2a", "autumn term", "AUTUMN TERM ")} == {"3F2A"}
    with pytest.raises(UsageError, match="2 data sets"):
        data_set_named(known, "spring")
    with pytest.raises(UsageError, match="no data set 'winter'") as error:
        data_set_named(known, "winter")
    assert "Autumn term (3F2A)" in error.value.hint
    with pytest.raises(UsageError, match="no data set") as error:
        data_set_named([], "winter")
    assert "none" in error.value.hint
