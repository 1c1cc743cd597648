"""SQL types as frozen classes, and the one table of their names.

    >>> parse_type_name("numeric", (15, 2))
    Decimal(precision=15, scale=2)
    >>> Decimal(15, 2).sql, Decimal(15, 2).arrow, Decimal(15, 2).physical
    ('DECIMAL(15,2)', Decimal128Type(decimal128(15, 2)), DataType(int64))

A type has two Arrow types. ``arrow`` is what leaves the engine (answers, other tools). ``physical`` is what record batches
hold between operators and what kernels read; it differs for DECIMAL up to 18 digits only, which computes on scaled int64.
A batch may hold a text column as ``dictionary<int32, string>`` too: codes are kept from the Parquet page to the answer.

Spec: SQL, Column types.
"""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa

from lake.errors import FeatureNotSupported, InvalidTableDefinition, UndefinedObject, near_name

DECIMAL_DIGITS_MAX: Final = 38
DECIMAL256_DIGITS_MAX: Final = 76
DECIMAL_INT64_DIGITS_MAX: Final = 18  # 10**18 - 1 is the largest run of nines an int64 holds


class _Hashed:
    """``hashed``: a type's hash, worked out once, neither compared nor copied."""

    __slots__ = ("hashed",)
    hashed: int


class Type(_Hashed, msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A SQL type.

    ``spelled`` is the name of the Arrow type it was asked for by, where that is not its own: ``UInt8`` of a SMALLINT,
    ``Utf8View`` of a VARCHAR. Types that differ in it alone are equal, compute alike and are stored alike; casts to them
    refuse what the Arrow type cannot hold, and ``arrow_typeof`` and texts know it. ``{}`` in a list's stands for its items'.
    """

    spelled: str = ""

    @property
    def sql(self) -> str:
        """The type as SQL writes it."""
        raise NotImplementedError

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of answers."""
        raise NotImplementedError

    @property
    def physical(self) -> pa.DataType:
        """The Arrow type of record batches between operators."""
        return self.arrow

    def __str__(self) -> str:
        return self.sql

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__[:-1])
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._parts() == other._parts())

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own, of a struct that it is not to compare, goes by identity

    def __hash__(self) -> int:
        try:
            return self.hashed
        except AttributeError:
            found = hash((type(self), self._parts()))
            msgspec.structs.force_setattr(self, "hashed", found)
            return found

    def _parts(self) -> tuple[object, ...]:
        """What makes it another type: every field but ``spelled``, which stands last."""
        return tuple([getattr(self, name) for name in self.__struct_fields__[:-1]])


class Null(Type, frozen=True, eq=False):
    """The type of a bare NULL: casts to every other."""

    sql = "NULL"
    arrow = pa.null()


class Boolean(Type, frozen=True, eq=False):
    """true or false."""

    sql = "BOOLEAN"
    arrow = pa.bool_()


_INTEGERS: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


class Integer(Type, frozen=True, eq=False):
    """A signed integer of 8, 16, 32 or 64 bits."""

    bits: int

    @property
    def sql(self) -> str:
        return {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[self.bits]

    @property
    def arrow(self) -> pa.DataType:
        return _INTEGERS[self.bits]

    @property
    def digits(self) -> int:
        """Decimal digits that hold every value."""
        return {8: 3, 16: 5, 32: 10, 64: 19}[self.bits]


class Oid(Integer, frozen=True, eq=False):
    """A number of the catalog, which Postgres's clients know by a type of its own; computes as BIGINT."""

    bits: int = 64

    @property
    def sql(self) -> str:
        return "OID"


class Float(Type, frozen=True, eq=False):
    """An IEEE 754 number of 32 or 64 bits."""

    bits: int

    @property
    def sql(self) -> str:
        return "REAL" if self.bits == 32 else "DOUBLE"

    @property
    def arrow(self) -> pa.DataType:
        return pa.float32() if self.bits == 32 else pa.float64()


class Decimal(Type, frozen=True, eq=False):
    """An exact number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= DECIMAL_DIGITS_MAX or not 0 <= self.scale <= self.precision:
            raise InvalidTableDefinition(
                f"DECIMAL({self.precision},{self.scale}) is out of range: 1 to {DECIMAL_DIGITS_MAX} digits, "
                "scale from 0 to the precision"
            )

    @property
    def sql(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def arrow(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    @property
    def physical(self) -> pa.DataType:
        return pa.int64() if self.is_short else self.arrow

    @property
    def is_short(self) -> bool:
        """Whether values compute as scaled int64."""
        return self.precision <= DECIMAL_INT64_DIGITS_MAX


class Text(Type, frozen=True, eq=False):
    """Unicode text of any length."""

    sql = "VARCHAR"
    arrow = pa.string()


class Uuid(Text, frozen=True, eq=False):
    """A universally unique identifier, kept as its text: 36 characters, lower case."""

    sql = "UUID"


class Json(Type, frozen=True, eq=False):
    """JSON text."""

    sql = "JSON"
    arrow = pa.string()


class Bytes(Type, frozen=True, eq=False):
    """Bytes of any length."""

    sql = "BYTEA"
    arrow = pa.binary()


class Date(Type, frozen=True, eq=False):
    """A day."""

    sql = "DATE"
    arrow = pa.date32()


class Time(Type, frozen=True, eq=False):
    """A time of day in microseconds."""

    sql = "TIME"
    arrow = pa.time64("us")


class Timestamp(Type, frozen=True, eq=False):
    """Microseconds: a wall clock's reading, or with ``zoned`` an instant in UTC."""

    zoned: bool = False

    @property
    def sql(self) -> str:
        return "TIMESTAMPTZ" if self.zoned else "TIMESTAMP"

    @property
    def arrow(self) -> pa.DataType:
        return pa.timestamp("us", tz="UTC" if self.zoned else None)


class Interval(Type, frozen=True, eq=False):
    """Months, days and nanoseconds, each with its own sign."""

    sql = "INTERVAL"
    arrow = pa.month_day_nano_interval()


class List(Type, frozen=True, eq=False):
    """A list of values of one type."""

    of: Type

    @property
    def sql(self) -> str:
        return f"{self.of.sql}[]"

    @property
    def arrow(self) -> pa.DataType:
        return pa.list_(self.of.arrow)

    @property
    def physical(self) -> pa.DataType:
        return pa.list_(self.of.physical)


class Struct(Type, frozen=True, eq=False):
    """Values of several types under names."""

    fields: tuple[tuple[str, Type], ...]

    @property
    def sql(self) -> str:
        return f"STRUCT({', '.join(f'{_field_name(name)} {type.sql}' for name, type in self.fields)})"

    @property
    def arrow(self) -> pa.DataType:
        return pa.struct([(name, type.arrow) for name, type in self.fields])

    @property
    def physical(self) -> pa.DataType:
        return pa.struct([(name, type.physical) for name, type in self.fields])

    def place(self, name: str) -> int | None:
        """Which field has the name, in any case where none has it as it is; None where there is none."""
        names = [item for item, _ in self.fields]
        if name in names:
            return names.index(name)
        lowered = [item.lower() for item in names]
        return lowered.index(name.lower()) if name.lower() in lowered else None


class Map(Type, frozen=True, eq=False):
    """Values found by their keys."""

    key: Type
    value: Type

    @property
    def sql(self) -> str:
        return f"MAP({self.key.sql}, {self.value.sql})"

    @property
    def arrow(self) -> pa.DataType:
        return pa.map_(self.key.arrow, self.value.arrow)

    @property
    def physical(self) -> pa.DataType:
        return pa.map_(self.key.physical, self.value.physical)

    @property
    def entries(self) -> List:
        """The list of key and value pairs that a map is underneath."""
        return List(Struct((("key", self.key), ("value", self.value))))


def _field_name(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else '"' + name.replace('"', '""') + '"'


TINYINT, SMALLINT, INT, BIGINT = Integer(8), Integer(16), Integer(32), Integer(64)
OID = Oid()
REAL, DOUBLE = Float(32), Float(64)
NULL, BOOLEAN, TEXT, UUID, JSON, BYTES = Null(), Boolean(), Text(), Uuid(), Json(), Bytes()
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL = Date(), Time(), Timestamp(), Timestamp(zoned=True), Interval()


class TypeNames(msgspec.Struct, frozen=True):
    """One row of TYPES: a type and what each neighbour calls it.

    spellings   what SQL text may say, lower case, the first one canonical
    arrow_name  the Arrow name that table definitions over HTTP use
    pg_oid      the oid of the value, and of an array of such values
    iceberg     the Iceberg primitive, or None where Iceberg has none
    json        the JSON-schema type of a value in an answer
    """

    type: Type
    spellings: tuple[str, ...]
    arrow_name: str
    pg_oid: int
    pg_array_oid: int
    iceberg: str | None
    json: str


TYPES: Final[tuple[TypeNames, ...]] = (
    TypeNames(BOOLEAN, ("boolean", "bool"), "Boolean", 16, 1000, "boolean", "boolean"),
    TypeNames(TINYINT, ("tinyint", "int1"), "Int8", 21, 1005, None, "integer"),
    TypeNames(SMALLINT, ("smallint", "int2"), "Int16", 21, 1005, None, "integer"),
    TypeNames(INT, ("int", "integer", "int4"), "Int32", 23, 1007, "int", "integer"),
    TypeNames(BIGINT, ("bigint", "int8", "long"), "Int64", 20, 1016, "long", "integer"),
    TypeNames(OID, ("oid", "xid"), "Int64", 26, 1028, None, "integer"),
    TypeNames(REAL, ("real", "float", "float4"), "Float32", 700, 1021, "float", "number"),
    TypeNames(DOUBLE, ("double", "double precision", "float8"), "Float64", 701, 1022, "double", "number"),
    TypeNames(TEXT, ("varchar", "text", "string", "char", "character", "character varying", "bpchar", "name"),
              "Utf8", 25, 1009, "string", "string"),
    TypeNames(UUID, ("uuid",), "Utf8", 2950, 2951, "string", "string"),
    TypeNames(JSON, ("json", "variant", "jsonb"), "Json", 114, 199, "string", "string"),
    TypeNames(BYTES, ("bytea", "binary", "varbinary", "blob"), "Binary", 17, 1001, "binary", "string"),
    TypeNames(DATE, ("date",), "Date32", 1082, 1182, "date", "string"),
    TypeNames(TIME, ("time", "time without time zone"), "Time64(Microsecond)", 1083, 1183, "time", "string"),
    TypeNames(TIMESTAMP, ("timestamp", "datetime", "timestamp without time zone", "timestamp_ntz"),
              "Timestamp(Microsecond, None)", 1114, 1115, "timestamp", "string"),
    TypeNames(TIMESTAMPTZ, ("timestamptz", "timestamp with time zone", "timestamp_ltz"),
              'Timestamp(Microsecond, Some("UTC"))', 1184, 1185, "timestamptz", "string"),
    TypeNames(INTERVAL, ("interval",), "Interval(MonthDayNano)", 1186, 1187, None, "string"),
)
DECIMAL_SPELLINGS: Final = ("decimal", "numeric", "dec")
DECIMAL_PG_OID, DECIMAL_PG_ARRAY_OID = 1700, 1231
VECTOR_OIDS: Final = {"int2vector": 22, "oidvector": 30}  # lists of the catalog, whose items count from 0
DECIMAL_DEFAULT: Final = Decimal(38, 10)

_BY_SPELLING: Final = {spelling: row.type for row in TYPES for spelling in row.spellings}
_BY_TYPE: Final = {row.type: row for row in TYPES}


UINT8, UINT16, UINT32 = Integer(16, spelled="UInt8"), Integer(32, spelled="UInt16"), Integer(64, spelled="UInt32")
UINT64 = Decimal(20, 0, spelled="UInt64")
VARCHAR = Text(spelled="Utf8View")
"""What SQL's text type is called in Arrow; a string literal is ``Utf8``."""

_UNSIGNED: Final[dict[str, Type]] = {
    "tinyint unsigned": UINT8, "smallint unsigned": UINT16, "int unsigned": UINT32, "integer unsigned": UINT32,
    "bigint unsigned": UINT64, "utinyint": UINT8, "usmallint": UINT16, "uinteger": UINT32, "ubigint": UINT64,
    "hugeint": Decimal(38, 0), "uhugeint": Decimal(38, 0), "uint8": UINT8, "uint16": UINT16, "uint32": UINT32,
    "uint64": UINT64,
}  # fmt: skip
"""Unsigned and huge integers are kept in the next wider type."""


def parse_type_name(name: str, arguments: tuple[int, ...] = ()) -> Type:
    """The type SQL calls ``name``, in any case.

    VARCHAR(n) and TIMESTAMP(p) take their number and do not keep it, as the base dialect does.
    42704  no such type
    """
    lowered = " ".join(name.lower().split()).removeprefix("pg_catalog.")
    if lowered in _UNSIGNED:
        return _UNSIGNED[lowered]
    if lowered in DECIMAL_SPELLINGS:
        match arguments:
            case ():
                return DECIMAL_DEFAULT
            case (precision,):
                return parse_type_name(name, (precision, 0))
            case (precision, scale) if DECIMAL_DIGITS_MAX < precision <= DECIMAL256_DIGITS_MAX:
                # The first 38 digits hold what there is; a value of more is refused.
                return Decimal(DECIMAL_DIGITS_MAX, scale, spelled=f"Decimal256({precision}, {scale})")
            case (precision, scale):
                return Decimal(precision, scale)
    if lowered == "float" and arguments:
        return REAL if arguments[0] <= 24 else DOUBLE
    found = _BY_SPELLING.get(lowered)
    if found is None:
        known = (*_BY_SPELLING, *_UNSIGNED, *DECIMAL_SPELLINGS)
        raise UndefinedObject(f'type "{name}" does not exist', hint=near_name(lowered, known))
    return found


def names_of(type: Type) -> TypeNames:
    """The row of TYPES for a type that has no parameters of its own."""
    return _BY_TYPE[type]


def pg_oid(type: Type) -> int:
    """The Postgres type oid of values of ``type``."""
    match type:
        case Decimal():
            return DECIMAL_PG_OID
        case List(of=Decimal()):
            return DECIMAL_PG_ARRAY_OID
        case List(spelled=spelled) if spelled in VECTOR_OIDS:
            return VECTOR_OIDS[spelled]
        case List(of=List() as inner):
            return pg_oid(inner)
        case List(of=inner):
            return names_of(inner).pg_array_oid if inner in _BY_TYPE else 1009
        case _:
            return names_of(type).pg_oid if type in _BY_TYPE else 25


def from_arrow(type: pa.DataType) -> Type:
    """The SQL type that holds values of an Arrow type; unsigned and half types widen, nanoseconds become micro.

    0A000  an Arrow type that no SQL type holds
    """
    if pa.types.is_dictionary(type):
        return from_arrow(type.value_type)
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return List(from_arrow(type.value_type))
    if pa.types.is_map(type):
        return Map(from_arrow(type.key_type), from_arrow(type.item_type))
    if pa.types.is_struct(type):
        return Struct(tuple((field.name, from_arrow(field.type)) for field in type))
    if pa.types.is_duration(type):
        return INTERVAL
    if pa.types.is_decimal(type):
        return Decimal(type.precision, type.scale)
    if pa.types.is_timestamp(type):
        return TIMESTAMP if type.tz is None else TIMESTAMPTZ
    for check, found in _FROM_ARROW:
        if check(type):
            return found
    raise FeatureNotSupported(f"Arrow type {type} is not supported")


_FROM_ARROW: Final = (
    (pa.types.is_null, NULL),
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, TINYINT),
    (lambda t: pa.types.is_int16(t) or pa.types.is_uint8(t), SMALLINT),
    (lambda t: pa.types.is_int32(t) or pa.types.is_uint16(t), INT),
    (lambda t: pa.types.is_int64(t) or pa.types.is_uint32(t), BIGINT),
    (pa.types.is_uint64, Decimal(20, 0)),
    (lambda t: pa.types.is_float16(t) or pa.types.is_float32(t), REAL),
    (pa.types.is_float64, DOUBLE),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), TEXT),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t)
     or pa.types.is_fixed_size_binary(t), BYTES),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (pa.types.is_interval, INTERVAL),
)
