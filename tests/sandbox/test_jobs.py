import fcntl
import os

import pytest

from understudy.errors import UsageError
from understudy.sandbox import Job, Limits
from understudy.sandbox.jobs import packed, sealed


def test_a_sealed_descriptor_cannot_be_changed():
    descriptor = sealed(b"learners")
    try:
        assert os.pread(descriptor, 100, 0) == b"learners"
        for change in (
            lambda: os.pwrite(descriptor, b"x", 0),
            lambda: os.ftruncate(descriptor, 0),
            lambda: os.ftruncate(descriptor, 100),
            lambda: fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, 0),
        ):
            with pytest.raises(OSError, match="permitted"):
                change()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("name", ["wall_seconds", "memory_bytes", "processes", "output_bytes"])
def test_limits_have_to_be_positive(name):
    with pytest.raises(UsageError, match=name):
        Limits(**{name: 0})


def test_what_a_job_has_to_be():
    with pytest.raises(UsageError, match="entry"):
        Job("", "a.b")
    with pytest.raises(UsageError, match="both"):
        Job("", "f", {"t": 1}, {"t": b""})
    with pytest.raises(UsageError, match="seed"):
        Job("", "f", seed=-1)
    with pytest.raises(UsageError, match="JSON") as caught:
        packed(Job("", "f", {"a": {"canary-7"}}))
    assert "canary" not in str(caught.value)
