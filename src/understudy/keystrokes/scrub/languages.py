"""What a language says by itself: keywords, and names of its library that are nobody's choice.

`fixed` names stay wherever they stand. `members` are methods and parameters of the library: they
stay behind a dot; a variable of the same name is the learner's, and is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from understudy.errors import MissingError, UsageError

if TYPE_CHECKING:
    from tree_sitter import Parser

SUFFIXES = {".java": "java", ".py": "python"}

_JAVA_KEYWORDS = """
abstract assert boolean break byte case catch char class const continue default do double else enum
exports extends final finally float for goto if implements import instanceof int interface long module
native new non open opens package permits private protected provides public record requires return
sealed short static strictfp super switch synchronized this throw throws to transient transitive try
uses var void volatile when while with yield true false null _
"""
_JAVA_FIXED = """
main args length java javax javafx org com util lang io out in err
System String StringBuilder StringBuffer StringJoiner Math StrictMath Object Objects Integer Long Short
Byte Double Float Character Boolean Number Void Enum Record Class Iterable Comparable Comparator Runnable
Callable Thread Cloneable AutoCloseable CharSequence Process ProcessBuilder Runtime Throwable Exception
Error RuntimeException IllegalArgumentException IllegalStateException NullPointerException
IndexOutOfBoundsException ArrayIndexOutOfBoundsException StringIndexOutOfBoundsException
ArithmeticException ClassCastException NumberFormatException UnsupportedOperationException
InterruptedException CloneNotSupportedException StackOverflowError OutOfMemoryError AssertionError
NoSuchElementException InputMismatchException ConcurrentModificationException IOException
FileNotFoundException UncheckedIOException EOFException
Override Deprecated SuppressWarnings FunctionalInterface SafeVarargs
Scanner Random Arrays List ArrayList LinkedList Map HashMap LinkedHashMap TreeMap Set HashSet
LinkedHashSet TreeSet Queue Deque ArrayDeque PriorityQueue Stack Vector Iterator ListIterator Collection
Collections Collectors Stream IntStream LongStream DoubleStream Optional OptionalInt OptionalDouble
Function BiFunction Supplier Consumer BiConsumer Predicate BiPredicate UnaryOperator BinaryOperator
Locale Date Calendar Timer TimerTask UUID BitSet EnumMap EnumSet Formatter Properties
File Files Path Paths Reader Writer BufferedReader BufferedWriter FileReader FileWriter PrintWriter
InputStream OutputStream InputStreamReader OutputStreamWriter FileInputStream FileOutputStream PrintStream
BigInteger BigDecimal LocalDate LocalTime LocalDateTime Duration Instant DateTimeFormatter DecimalFormat
Test Before After BeforeEach AfterEach Assert Assertions JFrame JPanel JButton JLabel JTextField
JOptionPane Color Graphics Graphics2D Dimension Point ActionEvent ActionListener KeyEvent KeyListener
MouseEvent MouseListener Pattern Matcher Serializable
"""
_JAVA_MEMBERS = """
println print printf format append insert reverse toString equals hashCode compareTo compare clone
finalize getClass run start join sleep interrupt wait notify notifyAll call accept apply test get set put
add addAll addFirst addLast remove removeAll removeIf removeFirst removeLast clear contains containsKey
containsValue containsAll isEmpty size iterator listIterator next nextInt nextLine nextDouble nextBoolean
nextLong nextFloat hasNext hasNextInt hasNextLine hasNextDouble close flush read readLine write newLine
charAt substring indexOf lastIndexOf toUpperCase toLowerCase trim strip split replace replaceAll
replaceFirst startsWith endsWith equalsIgnoreCase matches concat repeat chars isBlank lines valueOf
parseInt parseDouble parseLong parseBoolean intValue doubleValue longValue booleanValue isDigit isLetter
isLetterOrDigit isWhitespace isUpperCase isLowerCase toCharArray getBytes compareToIgnoreCase join
abs max min pow sqrt cbrt floor ceil round random sin cos tan asin acos atan atan2 exp log log10 hypot
signum toRadians toDegrees floorMod floorDiv PI E MAX_VALUE MIN_VALUE POSITIVE_INFINITY
NEGATIVE_INFINITY NaN isNaN sort sorted asList of copyOf copyOfRange fill stream deepToString binarySearch
shuffle swap unmodifiableList emptyList singletonList frequency forEach map filter reduce collect toList
toArray mapToInt mapToObj sum average count limit skip distinct anyMatch allMatch noneMatch findFirst
findAny orElse orElseGet orElseThrow isPresent ifPresent boxed range rangeClosed groupingBy joining
counting keySet values entrySet getKey getValue setValue getOrDefault putIfAbsent computeIfAbsent
computeIfPresent merge push pop peek poll offer element first last ordinal name getMessage getCause
printStackTrace getStackTrace getName getSimpleName exit currentTimeMillis nanoTime arraycopy getProperty
lineSeparator in out err exists delete mkdir mkdirs listFiles getPath getAbsolutePath toPath
readAllLines readString writeString newBufferedReader newBufferedWriter now plusDays minusDays getYear
actionPerformed keyPressed keyReleased keyTyped mousePressed mouseClicked paint paintComponent repaint
setVisible setSize setTitle setText getText setLayout addActionListener setDefaultCloseOperation
assertEquals assertTrue assertFalse assertNull assertNotNull assertThrows assertArrayEquals fail
comparing comparingInt thenComparing reversed naturalOrder nextGaussian nextToken hasMoreTokens
subtract multiply divide mod negate setScale byteValue shortValue floatValue bitCount toBinaryString
toHexString parse getDayOfWeek subList retainAll headMap tailMap firstKey lastKey ceilingKey floorKey
class this super
"""
_PYTHON_FIXED = """
self cls main args kwargs __name__ __main__ __init__ __file__ __doc__ __all__ __future__ annotations
numpy pandas matplotlib pyplot scipy sklearn pygame tkinter turtle requests pytest
"""
# Parameters and methods that no module listed below names.
_PYTHON_MEMBERS = """
end sep file flush key reverse default start step encoding errors newline mode strict repeat
array zeros ones arange linspace shape reshape mean std dot head tail iloc loc columns values groupby
merge read_csv to_csv plot show figure subplots title xlabel ylabel legend savefig scatter hist bar
forward backward left right up down penup pendown goto color speed done Turtle Screen
assertEqual assertTrue assertFalse assertRaises assertIn assertIsNone setUp tearDown
indent cls maxsplit ndigits initial base
"""
# Light modules of beginners' courses; their names are read from the interpreter.
_PYTHON_MODULES = (
    *("math", "cmath", "random", "os", "os.path", "sys", "time", "string", "re", "json", "csv", "copy"),
    *("collections", "itertools", "functools", "operator", "statistics", "datetime", "pathlib", "typing"),
    *("dataclasses", "enum", "abc", "io", "decimal", "fractions", "heapq", "bisect", "argparse"),
)
# Modules whose classes' methods are known too.
_PYTHON_CLASSES_OF = ("collections", "datetime", "random", "re")


@dataclass(frozen=True)
class Language:
    """Keywords and library names of a language, and how its parser is made."""

    name: str
    keywords: frozenset[str]
    fixed: frozenset[str]
    members: frozenset[str]
    parser: Parser = field(compare=False)


def language_of(name: str) -> Language:
    """The language by its name, with a parser."""
    if name not in SUFFIXES.values():
        raise UsageError(
            "asked for a language that is not known here.", hint="the languages are java and python."
        )
    return _language(name)


@cache
def _language(name: str) -> Language:
    if name == "java":
        keywords, fixed, members = _JAVA_KEYWORDS.split(), _JAVA_FIXED.split(), _JAVA_MEMBERS.split()
        return Language(name, frozenset(keywords), frozenset(fixed), frozenset(members), _parser(name))
    return Language(name, *_python_words(), _parser(name))


def _parser(name: str) -> Parser:
    try:
        import tree_sitter
        import tree_sitter_java
        import tree_sitter_python
    except ImportError:
        raise MissingError(
            "reading programs needs tree-sitter, which is not installed.",
            hint="pip install 'understudy[keystrokes]'",
        ) from None
    grammar = tree_sitter_java if name == "java" else tree_sitter_python
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def _python_words() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    import builtins
    import importlib
    import keyword
    import sys

    keywords = {*keyword.kwlist, *keyword.softkwlist, "print", "exec", "_"}
    # Keywords of other versions of Python: a replacement must be no keyword anywhere.
    keywords |= {"match", "case", "type", "async", "await", "nonlocal", "lazy"}
    fixed = {*dir(builtins), *_PYTHON_FIXED.split(), *sys.stdlib_module_names}
    members = {*_PYTHON_MEMBERS.split()}
    kinds: tuple[object, ...] = (str, bytes, bytearray, list, dict, set, frozenset, tuple, int, float)
    for kind in (*kinds, complex, range, BaseException, object, slice, memoryview):
        members.update(dir(kind))
    for module in _PYTHON_MODULES:
        content = importlib.import_module(module)
        members.update(dir(content))
        for value in vars(content).values():
            if isinstance(value, type) and module in _PYTHON_CLASSES_OF:
                members.update(entry for entry in dir(value) if not entry.startswith("_"))
    members.update(("readline", "readlines", "writelines", "read", "write", "close"))
    # One letter or an underscore in front is no interface that a learner would use by name.
    members = {entry for entry in members if not (entry.startswith("_") and not entry.endswith("__"))}
    return frozenset(keywords), frozenset(fixed), frozenset(members)
