"""A simulated programming course: students who never existed type lines of Java for seven weeks.

Every student has a speed and, per pair of keys, a habit that stays; experienced ones are faster on
the pairs that programs are made of and prose is not. Latencies are log-normal with a tail of
hesitations, and drift a little from week to week. Effects were set so that the published attack (nearest
profiles) sees the shape of Tables 2 to 4 of Leinonen (2016), before any stronger attack was written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.keystrokes.keystrokes import NANOSECONDS, Keystrokes

EXPERIENCE = ("none", "some")

LINES = (
    "int luku = 0;",
    "int summa = 0;",
    "String teksti = lukija.nextLine();",
    "int vastaus = Integer.parseInt(lukija.nextLine());",
    'System.out.println("Anna luku: ");',
    "System.out.println(summa);",
    "System.out.print(luku + tulos);",
    "if (luku == 10) {",
    "if (luku > 0 && luku < 100) {",
    "if (nimi.equals(salasana) || tyhja) {",
    "} else {",
    "}",
    "while (true) {",
    "while (i < taulukko.length) {",
    "for (int i = 0; i < luvut.size(); i++) {",
    "for (String nimi : nimet) {",
    "i++;",
    "summa += luku;",
    "break;",
    "return summa / luvut.size();",
    "return true;",
    "public static void main(String[] args) {",
    "public int laskeSumma(int eka, int toka) {",
    "private ArrayList<Integer> luvut;",
    "this.nimi = nimi;",
    "this.luvut = new ArrayList<Integer>();",
    "luvut.add(luku);",
    "Scanner lukija = new Scanner(System.in);",
    "import java.util.Scanner;",
    "public class Tulostaja {",
    "// tulosta kaikki luvut taulukosta",
    "tulostaTiedot(nimi, ika, true);",
)
ROWS_OF_KEYS = ("1234567890+", "qwertyuiop", "asdfghjkl", "zxcvbnm,.-")
ENTER, BACKSPACE = "Enter", "Backspace"
LINES_OF_A_SITTING = 45
HOUR = 3_600_000  # milliseconds
TERM_BEGINS = 1_756_710_000 * 1_000_000_000  # a Monday morning


@dataclass(frozen=True)
class TypingCourse:
    """How many students type how much, and how much they differ.

    Spreads are standard deviations of the logarithm of a latency: `speed` between students, `habit`
    of a student on one pair of keys, `drift` of a pair from week to week, `noise` from one time to the
    next. `experience_effect` is how much faster experienced students are on pairs with a symbol.
    """

    n_learners: int = 175
    n_weeks: int = 7
    characters_per_week: float = 3000.0
    experienced: float = 0.41
    speed: float = 0.10
    habit: float = 0.13
    drift: float = 0.09
    noise: float = 0.45
    experience_effect: float = 0.10
    hesitation: float = 0.06

    def simulate(self, rng: np.random.Generator) -> tuple[Keystrokes, NDArray[np.int8]]:
        """The keystrokes of one such course, and who had programmed before (0 or 1)."""
        typed = _typed_lines(rng)
        experience = (rng.random(self.n_learners) < self.experienced).astype(np.int8)
        text = self._text(typed, rng)
        pair, pairs = _pairs(text.key, text.opens, len(typed.keys))
        usual = self._usual(pairs, typed.keys, experience, rng)
        drift = rng.normal(0.0, self.drift, (self.n_learners, self.n_weeks, len(pairs)))
        logarithm = usual[text.learner, pair] + drift[text.learner, text.week, pair]
        logarithm += rng.normal(0.0, self.noise, len(pair))
        # Hesitating is not a habit of the fingers; most of it is beyond what profiles look at.
        hesitates = rng.random(len(pair)) < self.hesitation
        logarithm[hesitates] += rng.exponential(1.2, int(hesitates.sum()))
        milliseconds = np.maximum(np.exp(logarithm), 1.0)
        milliseconds[text.opens] = rng.uniform(2 * HOUR, 12 * HOUR, int(text.opens.sum()))
        down = (
            np.log(85.0)
            + rng.normal(0.0, 0.2, self.n_learners)[text.learner]
            + rng.normal(0.0, 0.1, (self.n_learners, len(typed.keys)))[text.learner, text.key]
            + rng.normal(0.0, 0.25, len(pair))
        )
        lengths = np.bincount(text.learner, minlength=self.n_learners)
        keystrokes = Keystrokes(
            text.key,
            _times(milliseconds, text),
            ~text.opens,
            np.concatenate([[0], np.cumsum(lengths)]),
            typed.keys,
            text.session,
            text.week,
            hold=(np.exp(down) * NANOSECONDS).astype(np.int64),
            simulated=True,
        )
        return keystrokes, experience

    def _text(self, typed: _Lines, rng: np.random.Generator) -> _Text:
        """Which keys each student presses: lines drawn anew every week, some sittings a week."""
        eager = np.exp(rng.normal(0.0, 0.3, self.n_learners))
        lengths = np.diff(typed.starts)
        n_lines = np.ceil(self.characters_per_week / lengths.mean() * eager).astype(np.int64)
        per_week = np.repeat(n_lines, self.n_weeks)  # lines of each student and week, in this order
        line = rng.integers(len(lengths), size=per_week.sum())
        before = np.concatenate([[0], np.cumsum(per_week)[:-1]])
        place = np.arange(len(line)) - np.repeat(before, per_week)  # of a line within its week
        keys_of_line = lengths[line]
        ends = np.cumsum(keys_of_line)
        key = typed.key[
            np.repeat(typed.starts[line] - (ends - keys_of_line), keys_of_line) + np.arange(ends[-1])
        ]
        opens = np.zeros(len(key), dtype=bool)
        opens[(ends - keys_of_line)[place % LINES_OF_A_SITTING == 0]] = True
        learner = np.repeat(np.repeat(np.arange(self.n_learners), n_lines * self.n_weeks), keys_of_line)
        week = np.repeat(np.repeat(np.tile(np.arange(self.n_weeks), self.n_learners), per_week), keys_of_line)
        sitting = np.cumsum(opens) - 1
        first = np.searchsorted(learner, np.arange(self.n_learners))
        return _Text(
            key,
            opens,
            learner.astype(np.int32),
            week.astype(np.int32),
            (sitting - sitting[first][learner]).astype(np.int32),
        )

    def _usual(
        self,
        pairs: NDArray[np.int64],
        keys: tuple[str, ...],
        experience: NDArray[np.int8],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Logarithm of the milliseconds that a student usually takes for a pair of keys."""
        symbol = np.array([not one.isalnum() and one != " " for one in keys])
        from_key, to_key = pairs // len(keys), pairs % len(keys)
        programming = symbol[from_key] | symbol[to_key]
        usual: NDArray[np.float64] = (
            np.log(_reach(keys)[from_key, to_key])
            + rng.normal(0.0, self.speed, self.n_learners)[:, None]
            + rng.normal(0.0, self.habit, (self.n_learners, len(pairs)))
            - self.experience_effect * experience[:, None] * programming
        )
        return usual


@dataclass(frozen=True)
class _Lines:
    """Lines as keys, with the slips of typing: line v is `key[starts[v]:starts[v + 1]]`."""

    keys: tuple[str, ...]
    key: NDArray[np.int32]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class _Text:
    """What is typed: a row per key press; `opens` marks the first of a sitting."""

    key: NDArray[np.int32]
    opens: NDArray[np.bool_]
    learner: NDArray[np.int32]
    week: NDArray[np.int32]
    session: NDArray[np.int32]


def _typed_lines(rng: np.random.Generator, variants: int = 12, slip: float = 0.04) -> _Lines:
    """Every line several times over, with other slips: a wrong key, taken back."""
    keys = (*sorted({one for line in LINES for one in line}), ENTER, BACKSPACE)
    code = {name: position for position, name in enumerate(keys)}
    typed: list[list[int]] = []
    for line in LINES:
        for _ in range(variants):
            pressed: list[int] = []
            for one in line:
                if rng.random() < slip:
                    pressed += [int(rng.integers(len(keys) - 2)), code[BACKSPACE]]
                pressed.append(code[one])
            typed.append([*pressed, code[ENTER]])
    starts = np.concatenate([[0], np.cumsum([len(one) for one in typed])])
    return _Lines(keys, np.concatenate(typed).astype(np.int32), starts)


def _pairs(
    key: NDArray[np.int32], opens: NDArray[np.bool_], n_keys: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which pair of keys each row ends, and the pairs that occur, as from-key times n_keys plus to-key."""
    before = np.concatenate([key[:1], key[:-1]])
    pairs, pair = np.unique(np.where(opens, key, before) * np.int64(n_keys) + key, return_inverse=True)
    return pair, pairs


def _reach(keys: tuple[str, ...]) -> NDArray[np.float64]:
    """Milliseconds from one key to another for an ordinary hand on an ordinary keyboard.

    Two hands alternate faster than one hand moves, a finger that repeats is slower, and symbols
    that need a modifier take longest.
    """
    place = {one: (row, column) for row, line in enumerate(ROWS_OF_KEYS) for column, one in enumerate(line)}
    spots = np.array([place.get(one.lower(), (3.0, 4.5) if one == " " else (1.0, 10.5)) for one in keys])
    hand = spots[:, 1] > 4.5
    distance = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1))
    plain = {*"".join(ROWS_OF_KEYS), " ", ENTER, BACKSPACE}
    shifted = np.array([one not in plain for one in keys])
    milliseconds: NDArray[np.float64] = 95.0 + 7.0 * distance + 18.0 * (hand[:, None] == hand[None])
    milliseconds += 55.0 * shifted[None, :] + 15.0 * shifted[:, None]
    return milliseconds


def _times(milliseconds: NDArray[np.float64], text: _Text) -> NDArray[np.int64]:
    """Nanoseconds since the epoch: every week's typing begins on its Monday."""
    passed = np.cumsum((milliseconds * NANOSECONDS).astype(np.int64))
    of_week = text.learner.astype(np.int64) * (int(text.week.max()) + 1) + text.week
    first = np.flatnonzero(np.diff(of_week, prepend=-1))
    passed -= np.repeat(passed[first], np.diff(np.append(first, len(passed))))
    return TERM_BEGINS + text.week.astype(np.int64) * (7 * 24 * HOUR * NANOSECONDS) + passed
