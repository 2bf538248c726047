"""What programs may import: for each module the names that it shows.

`*` stands for the names that a module lists in `__all__`, or, for a module written in C, for all its public names;
modules among them are left out always. What `standins` brings takes the place of a name, or adds one. Names that this
Python does not have are left out.

Not here, and why: what gives out the module it was made in or a path to it under a public name (pathlib's `parser`),
what reaches files, processes, threads, sockets or other modules by name, what evaluates text, and what shows frames.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BASES", "CATALOGUE"]

CATALOGUE: Final[dict[str, str]] = {
    "abc": "ABC abstractclassmethod abstractmethod abstractproperty abstractstaticmethod",
    "array": "array typecodes ArrayType",
    "asyncio": """
        ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION Barrier BoundedSemaphore BrokenBarrierError CancelledError
        Condition Event InvalidStateError LifoQueue Lock PriorityQueue Queue QueueEmpty QueueFull QueueShutDown
        Semaphore TaskGroup Timeout TimeoutError all_tasks as_completed create_task current_task ensure_future
        gather iscoroutine iscoroutinefunction isfuture shield sleep timeout timeout_at wait wait_for
    """,
    "base64": "*",
    "binascii": "*",
    "bisect": "*",
    "calendar": """
        Calendar FEBRUARY FRIDAY HTMLCalendar IllegalMonthError IllegalWeekdayError JANUARY MONDAY SATURDAY SUNDAY
        THURSDAY TUESDAY TextCalendar WEDNESDAY calendar day_abbr day_name firstweekday isleap leapdays month month_abbr
        month_name monthcalendar monthrange setfirstweekday timegm weekday weekheader
    """,
    "cmath": "*",
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque",
    "collections.abc": "*",
    "colorsys": "*",
    "contextlib": """
        AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator AsyncExitStack ContextDecorator
        ExitStack aclosing asynccontextmanager closing contextmanager nullcontext redirect_stderr redirect_stdout
        suppress
    """,
    "copy": "*",
    "csv": """
        Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL
        QUOTE_STRINGS Sniffer excel excel_tab field_size_limit get_dialect list_dialects reader register_dialect
        unix_dialect unregister_dialect writer
    """,
    "dataclasses": "FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple field fields is_dataclass replace",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo",
    "decimal": "*",
    "difflib": """
        Differ IS_CHARACTER_JUNK IS_LINE_JUNK SequenceMatcher context_diff get_close_matches ndiff restore unified_diff
    """,
    "enum": """
        CONFORM CONTINUOUS EJECT EnumCheck FlagBoundary KEEP NAMED_FLAGS STRICT UNIQUE auto member nonmember property
        unique verify
    """,
    "fractions": "Fraction",
    "functools": "cache cached_property cmp_to_key lru_cache partial partialmethod reduce total_ordering",
    "graphlib": "*",
    "hashlib": """
        algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac scrypt sha1 sha224 sha256 sha384
        sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
    """,
    "heapq": "*",
    "hmac": "HMAC compare_digest digest new",
    "html": "escape unescape",
    "html.parser": "HTMLParser",
    "inspect": """
        cleandoc isabstract isasyncgen isasyncgenfunction isawaitable isbuiltin isclass iscoroutine iscoroutinefunction
        isfunction isgenerator isgeneratorfunction ismethod
    """,
    "io": "BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO",
    "ipaddress": """
        AddressValueError IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network NetmaskValueError
        collapse_addresses get_mixed_type_key ip_address ip_interface ip_network summarize_address_range
    """,
    "itertools": "*",
    "json": "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads",
    "math": "*",
    "numbers": "*",
    "operator": "*",
    "pprint": "*",
    "random": """
        Random SystemRandom betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits
        getstate lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate
        shuffle triangular uniform vonmisesvariate weibullvariate
    """,
    "re": """
        A ASCII DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern PatternError RegexFlag S U UNICODE VERBOSE
        X compile error escape findall finditer fullmatch match purge search split sub subn
    """,
    "secrets": "*",
    "statistics": "*",
    "string": "*",
    "struct": "*",
    "textwrap": "*",
    "time": """
        ctime gmtime localtime mktime monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns
        strftime strptime struct_time thread_time time time_ns timezone tzname daylight altzone asctime
    """,
    "tomllib": "TOMLDecodeError load loads",
    "types": """
        AsyncGeneratorType BuiltinFunctionType BuiltinMethodType CoroutineType EllipsisType GeneratorType
        MappingProxyType MethodType NoneType NotImplementedType SimpleNamespace UnionType
    """,
    "typing": """
        Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator Awaitable BinaryIO Callable
        ChainMap ClassVar Collection Concatenate Container ContextManager Coroutine Counter DefaultDict Deque Dict Final
        FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping
        MappingView Match MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoDefault NoReturn
        NotRequired Optional OrderedDict ParamSpec Pattern Protocol ReadOnly Required Reversible Self Sequence Set Sized
        SupportsAbs SupportsBytes SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound TYPE_CHECKING
        Text TextIO Tuple Type TypeAlias TypeAliasType TypeGuard TypeIs TypeVar TypeVarTuple TypedDict Union Unpack
        ValuesView assert_never assert_type cast final get_args is_typeddict overload override reveal_type
        runtime_checkable
    """,
    "unicodedata": "*",
    "urllib.parse": """
        DefragResult ParseResult SplitResult parse_qs parse_qsl quote quote_plus unquote unquote_plus unquote_to_bytes
        urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit
    """,
    "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 SafeUUID UUID uuid3 uuid4 uuid5",
    "warnings": "catch_warnings filterwarnings resetwarnings simplefilter",
    "xml.etree.ElementTree": """
        Comment Element ParseError ProcessingInstruction QName SubElement XML XMLID fromstring fromstringlist indent
        iselement register_namespace tostring tostringlist
    """,
    "xml.sax.saxutils": "escape quoteattr unescape",
    "zlib": "*",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError available_timezones",
}

BASES: Final[dict[str, str]] = {
    "builtins": """
        bool bytearray bytes classmethod complex dict float frozenset int list object property set staticmethod str
        tuple
    """,
    "abc": "ABC",
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque",
    "collections.abc": "*",
    "contextlib": """
        AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator ContextDecorator
    """,
    "csv": "Dialect excel excel_tab unix_dialect",
    "datetime": "date datetime time timedelta tzinfo",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "html.parser": "HTMLParser",
    "io": "BytesIO StringIO",
    "json": "JSONDecoder JSONEncoder",
    "numbers": "Complex Integral Number Rational Real",
    "string": "Template",
    "types": "SimpleNamespace",
    "typing": "Any Generic Protocol SupportsAbs SupportsFloat SupportsInt SupportsIndex",
}
"""The classes beside exceptions that a program's classes may inherit from: none keeps what a program must not have in a
private attribute of its instances."""
