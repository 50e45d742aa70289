"""Our own pictures of the workflow and of simulated students."""

import xml.etree.ElementTree as ET

from reproductions.dp_rasch import pictures
from reproductions.dp_rasch.figures import COMPARED


def test_the_workflow_is_a_picture_with_words(tmp_path):
    tree = ET.fromstring(pictures.workflow())
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    for words in ("Answers of a class", "Noisy totals", "Difficulties", "Ability and chances", "at home"):
        assert words in texts
    pictures.save_workflow(tmp_path)
    assert (tmp_path / "workflow.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "workflow.svg").exists()


def test_the_boxes_hold_their_words_and_stay_on_the_picture():
    for box in pictures._BOXES:
        assert box.x >= 0
        assert box.x + box.width <= 680
        assert box.y + box.height <= 316
        assert 54 + 20 * (len(box.lines) - 1) < box.height
        # A letter of 13 pixels is about 6.5 wide.
        assert max(map(len, box.lines)) * 6.5 < box.width


def test_a_point_per_simulated_student_and_item():
    figure = pictures.scatter(sizes=(8, 12))
    drawn = figure.specification["concat"]
    assert len(drawn) == 2 * len(COMPARED)
    counts = [len(part["layer"][0]["data"]["values"]) for part in drawn]
    assert counts == [8 * 16, 12 * 16] * len(COMPARED)
    values = drawn[0]["layer"][0]["data"]["values"]
    assert all(0 <= value["x"] <= 1 and 0 <= value["y"] <= 1 for value in values)
    assert "simulated students" in figure.description
