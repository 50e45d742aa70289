"""People inside the text of an action: known by their place in it, and replaced by a constant.

Platforms write whom an event is about into addresses (`/users/12`, `?user_id=12`, `user/view.php?id=12`) and sentences
("The user with id '12' viewed ..."). What stands at such a place is replaced in every cell by itself, whatever it is:
nothing is compared with the ids of learners, so that no learner's rows decide what becomes of another's.

What this cannot do: find a person's name at any other place. `core.files.mentions` looks for those, and commands refuse
what it finds.
"""

from __future__ import annotations

import polars as pl

from understudy.core.files.people.identifiers import EMAIL

PERSON = "(person)"
_VALUE = r"""[^&#;\s"'<>]*"""
_SEGMENT = r"""[^/?#&;\s"'<>]+"""
# In paths, what follows one of these or its plural is a person, or what only one person has.
_PATHS = "user|person|people|profile|student|learner|member|participant|teacher|author|enrollment|submission"
# In queries, a person, what only one person has, or a session.
_PARAMETERS = (
    r"(?:as_|become_|real_|sis_|related|to|from)?(?:user|student|learner|member|participant|teacher|author|person|actor)"
    r"s?(?:[_-]?(?:id|name|key|no|number|email|login))?s?",
    r"uid|sid|login|login_id|name|first_?name|last_?name|full_?name|e-?mail|mail|recipient|sender|enrollment_id",
    r"submission_?id|attempt_?id|attempt|access_token|token|sesskey|session_?id|phpsessid|ip",
)
# Words of Moodle's sentences in front of an id that belongs to one person. They are English in every language.
_OWNED = (
    "user|attempt|submission|post|message|conversation|comment|note|grade|entry|record|response|answer|session|token|"
    "user enrolment|role assignment|override|extension|notification|contact request|role_assignments|essay"
)
# A page of Moodle with this name is about the person whose id it gets.
_PAGES = r"user/[\w-]+|message/[\w-]+|blog/[\w-]+|notes/[\w-]+|badges/mybadges|grade/report/user/[\w-]+"
# The first of each pair becomes the second, in this order. A marker keeps pages of Moodle apart from people's paths.
_MARK = "\x1f"
_PLACES = (
    (rf"(?i)((?:{_PAGES})\.php\?(?:{_VALUE}[&;])*(?:id|u|userid)=){_VALUE}", f"${{1}}{PERSON}"),
    (r"(?i)(/user)/([\w-]+\.php)", f"${{1}}{_MARK}${{2}}"),
    (rf"(?i)(/(?:{_PATHS})s?/){_SEGMENT}", f"${{1}}{PERSON}"),
    (_MARK, "/"),
    (rf"(/~|(?i:https?)://[^/\s]+/u/){_SEGMENT}", f"${{1}}{PERSON}"),
    (
        rf"(?i)([?&;](?:{'|'.join(_PARAMETERS)})(?:\[\w*\]|%5B\w*%5D)?=){_VALUE}",
        f"${{1}}{PERSON}",
    ),
    (rf"(?i)(mailto:){_SEGMENT}", f"${{1}}{PERSON}"),
    (rf"(?i)\b((?:{_OWNED})s? (?:with )?(?:the |an )?(?:id|ids)[ =:]+)'[^']*'", f"${{1}}'{PERSON}'"),
    (rf"(?i)\b((?:{_OWNED})s? (?:with )?(?:the |an )?(?:id|ids)[ =:]+)\d+", f"${{1}}{PERSON}"),
    (r"(?i)\b((?:username|user name|user|login|e-?mail(?: address)?) )'[^']*'", f"${{1}}'{PERSON}'"),
)


def without_people(texts: pl.Series) -> pl.Series:
    """The texts with a constant at every place of a person: in addresses, and in Moodle's sentences."""
    for place, constant in _PLACES:
        texts = texts.str.replace_all(place, constant)
    return texts


def without_addresses(texts: pl.Series) -> pl.Series:
    """The texts with a constant for every e-mail address, for texts that a platform wrote and not a teacher."""
    return texts.str.replace_all(EMAIL.replace("@", "(?:@|%40)"), PERSON)
