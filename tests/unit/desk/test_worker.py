"""The worker: takes jobs, keeps its lease, and throws away what is not its own any more."""

from understudy.desk.service import views


def test_a_request_from_draft_to_certificate(filled):
    name = filled.released()
    shown = views.request(filled.desk, filled.researcher, name)
    assert shown.released is not None
    assert shown.certificate
    assert views.certificate(filled.desk, shown.certificate)["result"] == shown.released.to_json()
