"""Which passwords are taken: long ones that nobody guesses first."""

from __future__ import annotations

from itertools import pairwise

from understudy.errors import UsageError

SHORTEST = 12
LONGEST = 1000

# Of lists of leaked passwords, those with at least twelve characters, and what people write when told to write more.
# Digits and signs at the end are taken off before comparing, so that each stands for many.
_LISTED = (
    "passwordpassword password1234 passwort passwortpasswort passphrase password qwertyuiop "
    "qwertyuiopasdf qwertyuiopasdfghjkl qwertyuiopasdfghjklzxcvbnm qwertyqwerty qwertzuiop asdfghjkl "
    "asdfghjklasdfghjkl zxcvbnm 1qaz2wsx3edc 1q2w3e4r5t6y 1q2w3e4r5t 1qazxsw2 q1w2e3r4t5y6 "
    "qazwsxedcrfv abcdefghijkl abcdefghijklmnop abcdefghijklmnopqrstuvwxyz iloveyou iloveyouforever "
    "iloveyousomuch letmein letmeinletmein letmeinplease welcome welcomewelcome administrator "
    "adminadmin adminadminadmin changeme changemechangeme changemeplease correcthorsebatterystaple "
    "trustno trustnotrustno sunshine sunshinesunshine princess princessprincess football "
    "footballfootball baseball basketball superman superstar monkeymonkey dragondragon mynameis "
    "unknownunknown internetinternet computercomputer teacherteacher schoolschool studentstudent "
    "understudy understudydesk validationdesk thisismypassword mypassword mypasswordis secretsecret "
    "topsecretpassword pleaseletmein whateverwhatever nothingnothing starwars harrypotter "
    "michaeljackson manchesterunited liverpoolfc "
)
_COMMON = frozenset(_LISTED.split())


def check_password(password: str, email: str, name: str) -> None:
    """Raise if a password is too easy to guess."""
    if len(password) < SHORTEST:
        raise UsageError(
            f"the password has {len(password)} characters, and {SHORTEST} are the fewest.",
            hint="a few words that do not belong together are easy to remember.",
        )
    if len(password) > LONGEST:
        raise UsageError("the password is too long.", hint=f"{LONGEST} characters are the most.")
    plain = _letters(password)
    own = {_letters(part) for part in (email, email.partition("@")[0], name, *name.split())}
    repeated = {part * times for part in own if part for times in (1, 2, 3)}
    if plain in repeated or plain in _COMMON or len(set(password.lower())) < 4 or _in_a_row(password):
        raise UsageError(
            "this password is among the first that somebody would try.",
            hint="use neither your name nor your address, nor a word that everybody uses.",
        )


def _letters(text: str) -> str:
    """Without spaces and signs, and without digits at the end: how people vary one password."""
    return "".join(one for one in text.lower() if one.isalnum()).rstrip("0123456789")


def _in_a_row(password: str) -> bool:
    """Such as 123456789012 or abcdefghijkl."""
    steps = {(ord(b) - ord(a)) % 10 for a, b in pairwise(password)}
    return len(steps) == 1
