"""Words of a language: keywords, and names of its library, which no learner chose.

`fixed` names stay wherever they stand. `members` are methods and parameters of the library: they
stay behind a dot; a variable of the same name is the learner's, and is replaced. Whatever is not
listed here is replaced: a list that lacks a library's name costs a readable name, no more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from understudy.core.extras import needs_extra
from understudy.errors import UsageError

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
util lang io nio file text time math net sql awt swing event regex function stream concurrent atomic locks
temporal charset border table tree
AtomicInteger AtomicLong AtomicBoolean AtomicReference ExecutorService Executors Executor Future
CompletableFuture CountDownLatch ConcurrentHashMap ConcurrentLinkedQueue CopyOnWriteArrayList BlockingQueue
LinkedBlockingQueue ArrayBlockingQueue TimeUnit Lock ReentrantLock ReadWriteLock Semaphore ThreadLocal
ThreadLocalRandom SecureRandom Entry SortedMap SortedSet NavigableMap NavigableSet AbstractList
AbstractMap WeakHashMap IdentityHashMap Hashtable Dictionary StringTokenizer Enumeration RandomAccess
IntFunction IntPredicate IntConsumer IntSupplier IntUnaryOperator IntBinaryOperator ToIntFunction
ToDoubleFunction ToLongFunction BooleanSupplier DoubleSupplier DoubleUnaryOperator DoubleBinaryOperator
IntSummaryStatistics DoubleSummaryStatistics OptionalLong Collector StreamSupport Spliterator
NumberFormat SimpleDateFormat DateFormat ParseException MessageFormat RoundingMode MathContext
DayOfWeek Month Year ZonedDateTime ZoneId ChronoUnit Period DateTimeException
DataInputStream DataOutputStream ObjectInputStream ObjectOutputStream ByteArrayInputStream
ByteArrayOutputStream StringReader StringWriter Console Closeable Charset StandardCharsets URL URI Socket
ServerSocket HttpClient Connection DriverManager Statement PreparedStatement ResultSet SQLException
TimeoutException ExecutionException NoSuchFieldException NoSuchMethodException ClassNotFoundException
ReflectiveOperationException SecurityException NegativeArraySizeException ArrayStoreException
EmptyStackException DuplicateFormatFlagsException LinkageError VirtualMachineError
Retention RetentionPolicy Target ElementType Documented Inherited Repeatable ParameterizedTest ValueSource
DisplayName BeforeAll AfterAll BeforeClass AfterClass Ignore Disabled Rule RunWith Points Timeout
JTextArea JScrollPane JMenu JMenuBar JMenuItem JComponent JDialog JTable JList JCheckBox JComboBox
BorderLayout FlowLayout GridLayout BoxLayout Container Component Font Image ImageIcon BufferedImage ImageIO
SwingUtilities WindowConstants Application Stage Scene Pane Button Label TextField TextArea VBox HBox
GridPane BorderPane StackPane Canvas GraphicsContext FXML FXMLLoader
EXIT_ON_CLOSE CENTER NORTH SOUTH EAST WEST HORIZONTAL VERTICAL UTF_8 HALF_UP TEN ONE ZERO TWO
SECONDS MILLISECONDS MINUTES HOURS DAYS MONTHS YEARS RUNTIME METHOD FIELD TYPE
setCharAt deleteCharAt insert indexOf capacity ensureCapacity trimToSize codePointAt contentEquals strip
stripLeading stripTrailing stripIndent formatted regionMatches intern isSpaceChar isAlphabetic
getNumericValue toChars digit forDigit toOctalString toUnsignedString MAX_PRIORITY incrementAndGet
getAndIncrement decrementAndGet addAndGet compareAndSet lock unlock tryLock await signal signalAll submit
shutdown awaitTermination invokeAll newFixedThreadPool isAlive setDaemon currentThread getId setName
setPriority gc availableProcessors freeMemory totalMemory maxMemory exec waitFor getenv setProperty
identityHashCode requireNonNull requireNonNullElse hash nonNull isNull hasNextLong useDelimiter
useLocale findInLine skip reset mark ready nextElement hasMoreElements countTokens descendingIterator
descendingMap descendingSet pollFirst pollLast peekFirst peekLast offerFirst offerLast getFirst getLast
higherKey lowerKey higherEntry lowerEntry floorEntry ceilingEntry firstEntry lastEntry higher lower ceiling
compute replaceAll entry ofEntries copyOf nCopies addAll disjoint rotate emptyMap emptySet singleton
unmodifiableMap unmodifiableSet synchronizedList toMap toSet toCollection partitioningBy mapping summingInt
averagingInt averagingDouble flatMap mapToDouble mapToLong asDoubleStream takeWhile dropWhile iterate
generate parallel parallelStream sequential summaryStatistics getMax getMin getAverage getSum getCount
getAsInt getAsDouble andThen compose identity negate and or minBy maxBy nullsFirst nullsLast reverseOrder
getClass getSuperclass getMethod getDeclaredMethods newInstance isInstance cast getSuppressed
addSuppressed initCause getLocalizedMessage fillInStackTrace setStackTrace getStackTrace
plus minus plusHours plusMinutes plusSeconds plusMonths plusYears plusWeeks minusMonths minusYears isBefore
isAfter isEqual between until getMonth getMonthValue getDayOfMonth getHour getMinute getSecond toMillis
toSeconds ofPattern toLocalDate atTime withDayOfMonth isLeapYear lengthOfMonth toDays toHours toMinutes
isFile isDirectory getParent getFileName resolve createNewFile renameTo list walk lines newDirectoryStream
add subtract remainder toBigInteger gcd modPow isProbablePrime compareTo
drawString drawLine drawRect fillRect drawOval fillOval drawImage setColor setFont getGraphics getWidth
getHeight setBounds setLocation getX getY getSource getKeyCode getActionCommand showMessageDialog
showInputDialog showConfirmDialog invokeLater pack setBackground setForeground setPreferredSize
addKeyListener addMouseListener mouseReleased mouseEntered mouseExited mouseMoved mouseDragged launch
setScene show setOnAction getChildren setTop setBottom setLeft setRight setCenter
value expected timeout message assertSame assertNotSame assertNotEquals assertAll assertDoesNotThrow
find group groupCount compile matcher usingDelimiter parseFloat parseByte parseShort parseUnsignedInt
numberOfLeadingZeros numberOfTrailingZeros highestOneBit isInfinite isFinite ulp rint log1p expm1 sinh cosh
tanh addExact subtractExact multiplyExact toIntExact negateExact absExact clamp ints doubles longs
nextBytes setSeed nextShort nextByte nextBigInteger nextBigDecimal
"""
# Packages of libraries in courses: names imported from below them are theirs.
_JAVA_LIBRARIES = """
java javax javafx jdk org.junit org.hamcrest org.mockito org.assertj org.w3c org.xml org.apache org.slf4j
org.springframework com.google.common com.google.gson com.fasterxml.jackson lombok
fi.helsinki.cs.tmc edu.princeton.cs.algs4 edu.princeton.cs.introcs acm.program acm.graphics greenfoot
"""
_PYTHON_LIBRARIES = """
numpy pandas matplotlib scipy sklearn pygame requests pytest seaborn torch tensorflow keras sympy networkx
flask django bs4 PIL plotly statsmodels hypothesis nltk polars yaml cv2 attr attrs pydantic typing_extensions
sqlalchemy tqdm rich IPython
"""
_PYTHON_FIXED = """
self cls main args kwargs __main__ __future__ annotations pyplot
"""
# The names between double underscores that Python or its library gives a meaning, dir() apart.
_PYTHON_DUNDERS = """
__init__ __new__ __del__ __repr__ __str__ __bytes__ __format__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__
__hash__ __bool__ __getattr__ __getattribute__ __setattr__ __delattr__ __dir__ __get__ __set__ __delete__
__set_name__ __slots__ __dict__ __weakref__ __init_subclass__ __class_getitem__ __mro_entries__ __prepare__
__instancecheck__ __subclasscheck__ __subclasshook__ __call__ __len__ __length_hint__ __getitem__
__setitem__ __delitem__ __missing__ __iter__ __next__ __reversed__ __contains__ __add__ __sub__ __mul__
__matmul__ __truediv__ __floordiv__ __mod__ __divmod__ __pow__ __lshift__ __rshift__ __and__ __xor__ __or__
__radd__ __rsub__ __rmul__ __rmatmul__ __rtruediv__ __rfloordiv__ __rmod__ __rdivmod__ __rpow__ __rlshift__
__rrshift__ __rand__ __rxor__ __ror__ __iadd__ __isub__ __imul__ __imatmul__ __itruediv__ __ifloordiv__
__imod__ __ipow__ __ilshift__ __irshift__ __iand__ __ixor__ __ior__ __neg__ __pos__ __abs__ __invert__
__complex__ __int__ __float__ __index__ __round__ __trunc__ __floor__ __ceil__ __enter__ __exit__
__aenter__ __aexit__ __await__ __aiter__ __anext__ __buffer__ __release_buffer__ __match_args__ __name__
__qualname__ __module__ __file__ __doc__ __all__ __version__ __author__ __path__ __package__ __spec__
__loader__ __cached__ __builtins__ __annotations__ __class__ __bases__ __base__ __mro__ __subclasses__
__func__ __self__ __wrapped__ __defaults__ __kwdefaults__ __code__ __globals__ __closure__ __import__
__debug__ __post_init__ __copy__ __deepcopy__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __sizeof__
__fspath__ __members__ __dataclass_fields__ __div__ __nonzero__ __unicode__ __cmp__ __metaclass__
__traceback__ __cause__ __context__ __suppress_context__ __notes__ __type_params__ __origin__ __args__
"""
# Parameters and methods that no module listed below names.
_PYTHON_MEMBERS = """
end sep file flush key reverse default start step encoding errors newline mode strict repeat
array zeros ones arange linspace shape reshape mean std dot head tail iloc loc columns values groupby
merge read_csv to_csv plot show figure subplots title xlabel ylabel legend savefig scatter hist bar
forward backward left right up down penup pendown goto color speed done Turtle Screen
assertEqual assertTrue assertFalse assertRaises assertIn assertIsNone setUp tearDown
indent cls maxsplit ndigits initial base
eye empty full random seed rand randn normal uniform choice permutation concatenate stack vstack hstack
transpose ravel flatten argmax argmin argsort cumsum where unique meshgrid allclose isnan nan inf pi dtype
astype axis size ndim float32 float64 int32 int64 ndarray linalg norm inv det solve nansum nanmean clip
percentile median var corrcoef cov polyfit polyval interp diff sign newaxis
DataFrame Series read_excel read_json sort_values sort_index reset_index set_index drop dropna fillna isna
isnull notna notnull rename apply applymap agg aggregate value_counts nunique describe info sample query
pivot pivot_table melt join concat iterrows itertuples to_datetime to_numpy to_list tolist to_excel index
ascending inplace by how on suffixes dt str idxmax idxmin nlargest nsmallest quantile corr rolling shift
axhline axvline annotate text xlim ylim xticks yticks grid tight_layout colorbar imshow boxplot pie
errorbar fill_between subplot add_subplot set_title set_xlabel set_ylabel set_xlim set_ylim suptitle label
linestyle linewidth marker alpha figsize fontsize cmap bins nrows ncols markersize rcParams ax
fit predict fit_transform transform score train_test_split test_size random_state n_estimators
fd bk rt lt setheading seth circle dot stamp pensize width fillcolor begin_fill end_fill hideturtle
showturtle tracer update onkey onclick listen mainloop bgcolor setup exitonclick setposition setpos xcor
ycor heading distance towards shapesize clearscreen onscreenclick ontimer textinput numinput
Tk Frame Label Button Entry Text Canvas Toplevel Menu Listbox Scrollbar Checkbutton Radiobutton StringVar
IntVar DoubleVar BooleanVar messagebox filedialog simpledialog ttk pack place grid_forget configure config
bind after destroy geometry resizable command textvariable row column sticky padx pady side fill expand
relief bg fg font showinfo showerror showwarning askstring create_line create_rectangle create_oval
create_text coords move delete insert END LEFT RIGHT TOP BOTTOM
init display set_mode set_caption flip blit Rect draw rect line polygon event QUIT KEYDOWN KEYUP key
get_pressed Clock tick image load transform scale mixer Sound Surface convert convert_alpha colliderect
sprite Sprite Group K_UP K_DOWN K_LEFT K_RIGHT K_SPACE K_ESCAPE MOUSEBUTTONDOWN
raises fixture mark parametrize approx monkeypatch capsys tmp_path
assertNotEqual assertAlmostEqual assertIsNotNone assertIs assertIsInstance assertNotIn assertGreater
assertLess assertListEqual assertDictEqual assertRaisesRegex TestCase setUpClass tearDownClass
status_code json params headers data get post
"""
# Light modules of beginners' courses; their names are read from the interpreter.
_PYTHON_MODULES = (
    *("math", "cmath", "random", "os", "os.path", "sys", "time", "string", "re", "json", "csv", "copy"),
    *("collections", "itertools", "functools", "operator", "statistics", "datetime", "pathlib", "typing"),
    *("dataclasses", "enum", "abc", "io", "decimal", "fractions", "heapq", "bisect", "argparse"),
    *("__future__", "threading", "queue", "textwrap", "shutil", "glob", "calendar", "uuid", "logging"),
    *("timeit", "types", "contextlib", "struct", "pickle", "warnings", "traceback", "secrets", "array"),
    *("collections.abc", "subprocess", "tempfile", "hashlib", "getpass", "platform", "locale", "pprint"),
)
# Modules whose classes' methods are known too.
_PYTHON_CLASSES_OF = (
    *("collections", "datetime", "random", "re", "pathlib", "io", "decimal", "fractions", "threading"),
    *("queue", "argparse", "csv", "enum", "string", "logging", "uuid", "calendar"),
)


@dataclass(frozen=True)
class Language:
    """Keywords and library names of a language, and how its parser is made."""

    name: str
    keywords: frozenset[str]
    fixed: frozenset[str]
    members: frozenset[str]
    libraries: frozenset[str]
    parser: Parser = field(compare=False)

    def has_import(self, path: str, name: str) -> bool:
        """Whether a name in an import from a path of packages is a library's, as far as is known here."""
        parts = [part.strip() for part in path.rstrip("; ").split(".")]
        if not any(".".join(parts[:end]) in self.libraries for end in range(1, len(parts) + 1)):
            return False
        # What a module holds is known where it is read from the interpreter.
        read = self.name == "python" and parts[0] in _PYTHON_MODULES
        return not read or name in self.members or name in self.fixed


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
        libraries = frozenset(_JAVA_LIBRARIES.split())
        return Language(
            name, frozenset(keywords), frozenset(fixed), frozenset(members), libraries, _parser(name)
        )
    return Language(name, *_python_words(), _parser(name))


def _parser(name: str) -> Parser:
    with needs_extra("keystrokes", "reading programs"):
        import tree_sitter
        import tree_sitter_java
        import tree_sitter_python
    grammar = tree_sitter_java if name == "java" else tree_sitter_python
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def _python_words() -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
    import builtins
    import importlib
    import keyword
    import sys

    keywords = {*keyword.kwlist, *keyword.softkwlist, "print", "exec", "_"}
    # Keywords of other versions of Python: a replacement must be no keyword anywhere.
    keywords |= {"match", "case", "type", "async", "await", "nonlocal", "lazy"}
    libraries = {*sys.stdlib_module_names, *_PYTHON_LIBRARIES.split()}
    fixed = {*dir(builtins), *_PYTHON_FIXED.split(), *_PYTHON_DUNDERS.split(), *libraries}
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
    # One letter or an underscore in front is not an interface that a learner would use by name.
    members = {entry for entry in members if not (entry.startswith("_") and not entry.endswith("__"))}
    members -= {"owner", "group", "author", "copyright", "credits"}
    fixed |= {entry for entry in members if entry.startswith("__")}
    return frozenset(keywords), frozenset(fixed), frozenset(members), frozenset(libraries)
