"""Templates of random expressions, by the family of what they answer; `random_query.py` fills them in.

    {int}     a column or literal of the family that may be reckoned with        {int=}  the same, its type always said
    {int!}    one of any size, which is only compared                            {int~}  any expression of the family
    {bool~}   a condition        {?a;b}  one of the words        {any}  a leaf of any family
    {key}     what orders the rows without ties                                  {same}  what was filled in before

The first template of a family is the simplest. What is not here, because the dialect rightly differs: arithmetic that may overflow
or divide by zero (the order of evaluation decides who sees the error; ``RISKS`` has those, one to a query), casts of
fractions to integers, DATE with INTERVAL, texts of timestamps, times and floats, upper and lower of letters beyond ASCII
(Postgres in the C locale leaves them alone), list index below 1.
"""

from __future__ import annotations

from typing import Final

CASTS: Final = {
    "int": "BIGINT", "dec": "DECIMAL(10,2)", "dbl": "DOUBLE PRECISION", "text": "VARCHAR", "date": "DATE",
    "ts": "TIMESTAMP", "time": "TIME", "iv": "INTERVAL", "bool": "BOOLEAN", "tz": "TIMESTAMPTZ", "bytes": "BYTEA",
    "ints": "BIGINT[]", "texts": "VARCHAR[]", "real": "REAL", "uuid": "UUID",
}
FAMILIES: Final = tuple(CASTS)
NUMBERS: Final = ("int", "dec", "dbl", "real")
LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("1", "0", "2", "-1", "5"),
    "dec": ("1.5", "0.00", "-2.25", "10.0"),
    "dbl": ("1e0", "5e-1", "0e0", "-225e-2"),
    "text": ("'a'", "''", "'ab'", "'B'", "'%'", "'日本'"),
    "date": ("DATE '2024-02-29'", "DATE '1970-01-01'"),
    "ts": ("TIMESTAMP '2024-02-29 23:59:59.999999'", "TIMESTAMP '1970-01-01 00:00:00'"),
    "time": ("TIME '12:30:00'", "TIME '00:00:00'"),
    "iv": ("INTERVAL '1 month'", "INTERVAL '0 days'", "INTERVAL '-36 hours'"),
    "bool": ("true", "false"),
    "tz": ("TIMESTAMPTZ '2024-03-10 06:30:00+00'", "TIMESTAMPTZ '1970-01-01 01:00:00+02'"),
    "bytes": (r"CAST('\x6162' AS BYTEA)", r"CAST('\x' AS BYTEA)", r"CAST('\x00ff' AS BYTEA)"),
    "ints": ("CAST(ARRAY[1, 2] AS BIGINT[])", "CAST(ARRAY[] AS BIGINT[])", "CAST(ARRAY[NULL, 0] AS BIGINT[])"),
    "texts": ("CAST(ARRAY['a', 'b'] AS VARCHAR[])", "CAST(ARRAY[] AS VARCHAR[])", "CAST(ARRAY['', NULL] AS VARCHAR[])"),
    "real": ("CAST(1 AS REAL)", "CAST(-2.5 AS REAL)"),
    "uuid": ("CAST('123e4567-e89b-12d3-a456-426614174000' AS UUID)", "CAST('{00000000-0000-0000-0000-000000000000}' AS UUID)"),
    "json": ("""CAST('{"a":1,"b":[1,"x",null]}' AS JSON)""", "CAST('[]' AS JSON)", "CAST('\"a\"' AS JSON)"),
}
PATTERNS: Final = ("'a%'", "'%'", "'_'", "'%b'", "'%a_%'", "''", "'a!%b' ESCAPE '!'", "'a\\%b'", "'%xyz%z'", "'__'",
                   "'_%_%_'", "'!_' ESCAPE '!'", "'%\\%%' ESCAPE ''", "'%日%'", "'%''%'", "'%a%b%'", "'\\a%'")
REGEXES: Final = ("'a'", "'^a'", "'b$'", "'[a-c]+'", "'x|z'", "'^$'", "'.'", "'(a)(b)?'", "'[a-w]'", "'[^a]'", "'a{1,2}'",
                  "'(xy)z'", r"'\s|^B'")
SIMILAR: Final = ("'a'", "'(a|b)%'", "'%[b-x]'", "'_+'", "'ab?'", "'%(z){2}%'", "'[^a]%'")
COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>")
_REGEX: Final = "{?" + ";".join(REGEXES) + "}"
_LATER: Final = "{?" + ";".join(each for each in REGEXES if "^" not in each) + "}"  # as in the base, a text begins where a search starts
_ZONE: Final = "{?'UTC';'America/New_York';'Asia/Kolkata';'Europe/Berlin'}"
_UNIT: Final = "{?'month';'day';'hour';'year';'week';'quarter';'minute';'decade';'century'}"
_PICTURE: Final = ("{?'YYYY-MM-DD HH24:MI:SS';'DD Mon YY';'FMDay, FMMonth';'Q WW IW IYYY DDD';'HH12:MI am US';'J D ID W CC';"
                   "'MON mon Month DY'}")

EXPRESSIONS: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        "({int} {?+;-;*} {int})", "({int} {?/;%} NULLIF({int}, 0))", "length({text~})", "abs({int})", "(- {int})",
        "EXTRACT({?YEAR;MONTH;DAY;DOY;DOW;ISODOW;WEEK;ISOYEAR;CENTURY;DECADE} FROM {date~})",
        "EXTRACT({?YEAR;HOUR;MINUTE;QUARTER;WEEK;MILLENNIUM} FROM {ts~})", "({date} - {date})", "strpos({text~}, {text})",
        # Guarded: nobody sees the error of the branch that is not taken.
        "CASE WHEN {int=} <> 0 THEN 5 {?/;%} {same} ELSE {int} END",
        "({int} {?&;|;#} {int})", "mod({int}, {?2;3;-2})", "{?octet_length;char_length;ascii;bit_length}({text})",
        "CAST({?'12';' -3 ';'+7'} AS BIGINT)", "EXTRACT({?HOUR;MINUTE} FROM {time~})", "(~ {int})",
        "(abs({int}) {?<<;>>} {?1;0;3})", "position({text} IN {text~})", "{?gcd;lcm;div}({int}, {?2;3;-4})",
        "EXTRACT({?YEAR;MONTH;DAY;HOUR;DOW} FROM {tz~})", "EXTRACT({?YEAR;MONTH;DAY;HOUR;MINUTE} FROM {iv~})",
        "cardinality({ints~})", "({ints~})[{?1;2;5}]", "cardinality({texts~})", "array_position({ints~}, {int}::BIGINT)",
        "length({bytes~})", "octet_length({bytes})", "position({bytes} IN {bytes~})", "json_array_length({json} -> 'b')",
        "num_{?nulls;nonnulls}({any}, {any}, {any})", "sign({int})", "CAST({bool} AS INT)", "CAST({int} % 1000 AS SMALLINT)",
        "CAST({int} AS INT)", f"regexp_count({{text}}, {_REGEX})", "width_bucket({dbl}, 0e0, 10e0, {?3;1})",
        "date_part({?'year';'day';'week'}, {ts})",
        f"regexp_instr({{text}}, {_REGEX})", f"regexp_count({{text}}, {_LATER}, 2)", "NULLIF(array_length({ints~}, 1), 0)",
        "EXTRACT({?HOUR;DAY;DOW;WEEK} FROM ({tz~} AT TIME ZONE {?'Europe/Berlin';'UTC'}))", "(CAST({ts~} AS DATE) - {date})",
        "CAST(json_array_length({json} -> 'b') + {int} AS BIGINT)", "CAST({text} IS NULL AS INT)",
    ),
    "dec": (
        "({dec} {?+;-;*} {dec})", "({dec} {?+;-;*} {int})", "round({dec}, {?1;0;3;-1})", "{?floor;ceil;abs;sign}({dec})",
        "CAST({dec} AS DECIMAL({?12,1;20,0;38,8;14,3}))", "trunc({dec}, {?1;0})",
        "CAST({dbl} AS DECIMAL(20,{?2;3;0}))", "CAST({?'1.5';'-0.0055';' 12.345 ';'1e2';'.5'} AS DECIMAL(8,{?3;1;0}))",
        "({dec} % NULLIF({dec}, 0))", "CAST({int} AS DECIMAL(12,2))", "(- {dec})", "mod({dec}, {?2;1.5;-3})",
        "({int} * {dec} + {dec})", "CAST({real} AS DECIMAL(12,{?2;4}))", "({dec} - {int} * {dec})",
    ),
    "dbl": (
        "({dbl} {?+;-;*} {dbl})", "({dbl} / NULLIF({dbl}, 0))", "sqrt(abs({dbl}))", "CAST({int} AS DOUBLE PRECISION)",
        "CAST({dec} AS DOUBLE PRECISION)", "{?sign;trunc;sin;degrees;cos;atan;radians;tanh}({dbl})", "CAST(cbrt({dbl}) AS REAL)",
        "power({dbl}, {?2;0;3})", "EXTRACT(EPOCH FROM {ts~})", "EXTRACT(EPOCH FROM {iv~})", "{?floor;ceil;abs}({dbl})",
        "({dbl} {?+;-;*} {int})", "EXTRACT(EPOCH FROM {tz~})", "ln(abs({dbl}) + 1e0)", "log(abs({dbl}) + 1e0)",
        "atan2({dbl}, 2e0)", "CAST({?'1.5';' -2e3 ';'NaN';'-Infinity'} AS DOUBLE PRECISION)", "CAST({real} AS DOUBLE PRECISION)",
        "({real} {?+;-;*} {dbl})", "({dbl} {?+;-;*} {dec})", "({dbl!} {?+;-} {?1e0;'Infinity'})", "{?abs;floor;ceil;trunc}({dbl!})",
        "(- {dbl!})", "exp(- abs({dbl}))", "{?asinh;sinh;cot;acosh}(abs({dbl} / 5e2) + 1e0)", "CAST({int!} AS DOUBLE PRECISION)",
        "power(abs({dbl}), 5e-1)", "{?asin;acos;atanh}(sin({dbl}) / 2e0)",
    ),
    "real": ("(- {real})", "abs({real})", "CAST({int} AS REAL)", "CAST({dbl} AS REAL)", "({real} {?+;-;*} {real})",
             "{?floor;ceil}({real})", "CAST({dec} AS REAL)"),
    "text": (
        "({text~} || {text})", "{?upper;lower;trim;ltrim;rtrim;reverse;initcap}({text~})",
        "substr({text~}, {?1;2;0;-1;5}, {?1;0;2})", "{?left;right}({text~}, {?1;2;0;-1})",
        "replace({text~}, {text}, 'x')", "concat({text~}, {text})", "CAST({int!} AS VARCHAR)", "CAST({date~} AS VARCHAR)",
        "{?lpad;rpad}({text~}, {?5;3;0}, {?'*';'ab'})", "repeat({text}, {?2;0;1;-1})",
        "translate({text~}, 'ab%', {?'x';'';'%b'})", "overlay({text~} PLACING {text} FROM {?1;3;2})",
        "overlay({text~} PLACING {text} FROM {?1;3;2} FOR {?0;2})",
        "concat_ws('-', {text~}, {text}, {text})", f"regexp_replace({{text~}}, {_REGEX}, 'z', {{?'';'g';'i'}})",
        r"regexp_replace({text}, '(.)(.)', '\2\1'{?;, 'g'})", "{?btrim;ltrim;rtrim}({text~}, 'ab ')",
        "CAST({dec!} AS VARCHAR)", "CAST({bool} AS VARCHAR)", "substring({text~} FROM {?2;1;3} FOR {?1;2;0})",
        "{?md5;quote_literal;quote_ident;quote_nullable}({text~})", "split_part({text~}, {?'x';'b';''}, {?1;2;-1})",
        "trim({?BOTH;LEADING;TRAILING} 'a' FROM {text~})",
        f"to_char({{ts~}}, {_PICTURE})", f"to_char({{date}}, {_PICTURE})", "to_char({int}, {?'999';'FM0000';'S99';'9,999'})",
        "to_char({dec}, {?'990.99';'FM999.9';'0000.00MI'})", "format({?'%s-%s';'%2$s%1$s';'%L';'%%%s'}, {text}, {text})",
        "chr(65 + abs({int} % 20)::INT)", "to_hex(abs({int})::BIGINT)", "encode({bytes~}, {?'hex';'escape'})",
        "md5({bytes})", "({json} ->> {?'a';'b';'c'})", "({json} -> 'b' ->> {?0;1;5})", "({json} #>> ARRAY[{?'b', '1';'a';'c', 'a'}])",
        "array_to_string({texts~}, ','{?;, '*'})", "({texts~})[{?1;2;5}]", "array_to_string({ints~}, '+')",
        f"regexp_substr({{text}}, {_REGEX})", f"(regexp_match({{text}}, {_REGEX}))[1]", f"substring({{text}} FROM {_REGEX})",
        "({text} || {int})", "({date} || {text~})", "CAST({uuid~} AS VARCHAR)",
        "concat({text}, {int}, {date})", "left({text~}, {int}::INT)", "to_char({tz~}, 'YYYY-MM-DD HH24')",
        "CAST(CAST({int} % 1000 AS SMALLINT) AS VARCHAR)", "lower(upper({text}) || 'Q')",
    ),
    "date": (
        "({date} {?+;-} {?1;31;365})", "CAST({ts~} AS DATE)", "(DATE '2024-01-31' {?+;-} CAST({int} % 1000 AS INT))",
        "CAST({tz~} AS DATE)", "CAST(CAST({date~} AS VARCHAR) AS DATE)", "make_date(2024, {?1;2;12}, {?1;29})", "CAST({?'2024-02-29';' 1999-12-31 '} AS DATE)",
        "to_date({?'01/02/2024';'31/12/1999'}, 'DD/MM/YYYY')",
    ),
    "ts": (
        "({ts} {?+;-} INTERVAL {?'1 day';'1 month';'90 minutes';'1 year';'-1 week'})", "({ts} {?+;-} {iv~})",
        "({date} + {time})", f"date_trunc({_UNIT}, {{ts~}})", "CAST({date~} AS TIMESTAMP)", f"({{tz~}} AT TIME ZONE {_ZONE})",
        "CAST({tz~} AS TIMESTAMP)", "date_bin(INTERVAL {?'15 minutes';'2 days'}, {ts}, TIMESTAMP '2001-01-01 00:00:00')",
        "make_timestamp(2024, {?1;12}, 29, {?0;23}, 59, 1.5)", "CAST({?'2024-02-29 12:00';'1969-12-31T23:59:59.5'} AS TIMESTAMP)",
    ),
    "tz": (
        "({tz} {?+;-} INTERVAL {?'1 day';'1 month';'90 minutes'})", f"CAST(({{ts}} AT TIME ZONE {_ZONE}) AS TIMESTAMPTZ)", "CAST({ts} AS TIMESTAMPTZ)",
        f"date_trunc({_UNIT}, {{tz}})", "CAST({?'2024-07-01 12:00:00-04';'2024-01-01 00:00+05:30'} AS TIMESTAMPTZ)",
        "({tz} + {iv})", "CAST({date} AS TIMESTAMPTZ)",
    ),
    "time": ("CAST({ts~} AS TIME)", "({time} {?+;-} INTERVAL {?'1 hour';'90 minutes';'25 hours'})", "make_time({?1;23}, 59, 0.5)",
             "({time} + {iv})", "CAST({?'12:30';'01:02:03.25'} AS TIME)"),
    "iv": (
        "({ts} - {ts})", "({iv} {?+;-} {iv})", "({iv} * {?2;0;-1;1.5})", "(- {iv})", "({tz} - {tz})", "age({ts}, {ts})",
        "{?justify_days;justify_hours}({iv~})", "make_interval({?days;hours;months;years} => {?3;-2})", "({time} - {time})",
        "justify_interval({iv~})", "date_trunc({?'month';'day';'hour';'year';'quarter';'decade';'second'}, {iv~})", "({iv} * {dbl})", "({dec} * {iv})",
        "({iv} / {?2;4})", "CAST({?'1 year 2 mons';'P1DT2H';'-3 days 04:05'} AS INTERVAL)", "({date} - {ts})",
    ),
    "uuid": ("CAST(CAST({uuid} AS VARCHAR) AS UUID)", "CAST({?'FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF';'123e4567e89b12d3a456426614174000'} AS UUID)"),
    "bytes": ("({bytes~} || {bytes})", "substr({bytes~}, {?1;2}, {?1;2})", "decode({?'6162';'00fF'}, 'hex')",
              "sha256({bytes})", "decode(encode({bytes~}, 'base64'), 'base64')"),
    "ints": (
        "array_append({ints~}, {int=}::BIGINT)", "({ints~} || {ints})", "array_prepend({int=}::BIGINT, {ints~})",
                "({ints~})[{?1:2;2:3;1:1;3:9}]", "CAST(ARRAY[{int=}, {int=}] AS BIGINT[])", "({ints} || {int=}::BIGINT)",
        "CAST({?'{1,2}';'{7}'} AS BIGINT[])", "CAST('{ NULL, 7 }' AS BIGINT[])",
        "CAST(array_positions({ints}, {int}::BIGINT) AS BIGINT[])", "array_cat({ints}, {ints})",
    ),
    "texts": (
        "CAST(ARRAY[{text~}, {text=}] AS VARCHAR[])", "({texts~} || {texts})", "string_to_array({text~}, {?'b';'';',';NULL})::VARCHAR[]",
        f"regexp_split_to_array({{text}}, {_REGEX})::VARCHAR[]", f"regexp_match({{text}}, {_REGEX})::VARCHAR[]", "({texts~})[{?1:2;2:3}]",
        "string_to_array({text}, 'a', 'b')::VARCHAR[]", "CAST({ints~} AS VARCHAR[])", "string_to_array({text~}, NULL)::VARCHAR[]",
    ),
    "bool": ("({bool} {?AND;OR} {bool})",),
}
CONDITIONS: Final = (
    f"({{text~}} {{?LIKE;NOT LIKE;ILIKE;NOT ILIKE}} {{?{';'.join(PATTERNS)}}})", "({text} {?LIKE;NOT LIKE} {text~})",
    f"({{text~}} {{?~;!~;~*;!~*}} {_REGEX})", f"({{text}} {{?SIMILAR TO;NOT SIMILAR TO}} {{?{';'.join(SIMILAR)}}})",
    "({bool~} = {bool~})", "({bool~} {?IS TRUE;IS NOT TRUE;IS FALSE;IS NOT FALSE;IS UNKNOWN;IS NOT UNKNOWN})",
    "({int} {?=;<>;<} {?ANY;ALL} ({ints~}))", "({text} {?=;<>;>} {?ANY;ALL} ({texts~}))", "({ints~} {?@>;&&} CAST(ARRAY[{?1;2;0,1}] AS BIGINT[]))",
    "(CAST(ARRAY[{?'a';'','b'}] AS VARCHAR[]) {?<@;&&} {texts~})", "starts_with({text~}, {text})", "(({date}, {date}) OVERLAPS ({date}, {date}))",
    "(({ts}, {iv}) OVERLAPS ({ts}, {ts}))", "isfinite({date})", "({text} {?LIKE;NOT LIKE;ILIKE} {?ANY;ALL} ({texts}))",
    "(({int!}, {text}) {?IS NULL;IS NOT NULL})", f"regexp_like({{text}}, {_REGEX})", "({json} ->> 'a' = {text})",
    "(({json} -> 'a') IS {?NULL;NOT NULL})", "({date} {?<;=;>=;IS DISTINCT FROM} {ts~})", "({ts} {?<;=;>} {tz~})",
    "({date} {?<=;=;>} {tz~})", "({ts} BETWEEN {date} AND {tz})", "(({int}, {text}) {?IN;NOT IN} (({int}, {text}), ({?1, 'a';NULL, 'b'})))",
    "(({int}, {text}) {?=;<>;<} (SELECT {?1, 'a';CAST(NULL AS BIGINT), 'b';2, 'ab'}))", "({text} ^@ {text})", "({int} {?=;<} ANY ({?'{1,2}';'{7}'}))",
    "({dec} {?IN;NOT IN} ({int}, {dec}, {dbl}))", "({dbl!} {?<;>=;=} {?'NaN';'Infinity';'-Infinity'})", "isfinite({ts~})",
)

AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("count(*)", "count({any})", "sum({int})", "min({int!})", "max({int!})", "count(DISTINCT {any})",
            "bit_and({int})", "bit_or({int})", "percentile_disc(0.25) WITHIN GROUP (ORDER BY {int!} DESC)",
            "count(DISTINCT {int})", "bit_xor({int})", "regr_count({dbl}, {int})", "mode() WITHIN GROUP (ORDER BY {int!})"),
    "dec": ("sum({dec})", "min({dec!})", "max({dec!})", "sum(DISTINCT {dec})",
            "percentile_disc(0.5) WITHIN GROUP (ORDER BY {dec!})", "sum({dec} * {int})"),
    "dbl": ("avg({int})", "sum({dbl})", "min({dbl!})", "max({dbl!})", "avg({dbl})",
            "percentile_cont(0.4) WITHIN GROUP (ORDER BY {dbl})", "corr({dbl}, {int})", "regr_slope({dbl}, {int})",
            "avg(DISTINCT {int})", "{?covar_pop;covar_samp;regr_intercept;regr_r2;regr_avgx;regr_sxx}({dbl}, {int})",
            "percentile_cont(0.75) WITHIN GROUP (ORDER BY {int} DESC)", "avg({real})", "sum({dbl!})", "avg({dbl!})"),
    "real": ("min({real})", "max({real})", "CAST(sum({real}) AS REAL)"),
    "text": ("min({text})", "max({text~})", "string_agg({text}, ',' ORDER BY {key})",
             "string_agg(DISTINCT {text=}, '-' ORDER BY {same})", "string_agg({text}, {text} ORDER BY {key} DESC)",
             "percentile_disc(0.5) WITHIN GROUP (ORDER BY {text=})"),
    "date": ("min({date})", "max({date})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {date!} DESC)"),
    "ts": ("min({ts})", "max({ts~})", "mode() WITHIN GROUP (ORDER BY {ts!})"),
    "time": ("min({time})", "max({time})"),
    "iv": ("min({iv})", "max({iv})", "sum({iv})"),
    "bool": ("bool_and({bool})", "bool_or({bool~})", "every({bool})"),
    "tz": ("min({tz})", "max({tz})"),
    "bytes": ("(array_agg({bytes} ORDER BY {key}))[1]",),
    "uuid": ("(array_agg({uuid} ORDER BY {key}))[1]",),
    "ints": ("array_agg({int!}::BIGINT ORDER BY {key})", "array_agg(DISTINCT {int=} ORDER BY {same})::BIGINT[]",
             "min({ints})", "max({ints})"),
    "texts": ("array_agg({text~}::VARCHAR ORDER BY {key})", "array_agg({text=} ORDER BY {same} DESC NULLS LAST, {key})::VARCHAR[]"),
}
# What serves as window functions besides, of values that leave a frame again.
FRAMED: Final[dict[str, tuple[str, ...]]] = {"dbl": ("sum({dbl!})", "avg({dbl!})", "avg({real})"), "iv": ("avg({iv})",)}
WINDOWED: Final = 3  # so many of a family's first aggregates serve as window functions
# Only as a column of the answer: AVG of decimals has another scale, and deviations another type.
LAST_AGGREGATES: Final = ("avg({dec})", "stddev({int})", "var_pop({dbl})", "stddev_pop({int})", "variance({dec})",
                          "sum({int})::DECIMAL(30,2)", "var_samp({real})", "stddev_samp({dec})", "sum({real})")
RANKS: Final = ("row_number()", "rank()", "dense_rank()", "ntile(3)", "percent_rank()", "cume_dist()")

# What may fail: alone in a query, over one table, so that both engines see the same error.
RISKS: Final = (
    "CAST({text!} AS {?INT;BIGINT;DATE;TIMESTAMP;BOOLEAN;DOUBLE PRECISION;DECIMAL(5,2);TIME;INTERVAL;SMALLINT;REAL})",
    "CAST({int!} AS {?INT;SMALLINT;DECIMAL(3,1)})", "CAST({dec!} AS DECIMAL({?5,2;3,1;38,20}))", "({int} {?/;%} {int})",
    "({int!} {?+;-;*} {int!})", "CAST({?'12x';'';'1.5';'99999999999';'0x1F';'1_000';' '} AS {?INT;BIGINT;DECIMAL(8,2);SMALLINT})",
    "CAST({?'2024-02-30';'2024-13-01';'2024-01-01 25:00'} AS {?DATE;TIMESTAMP})",
    "CAST({?'25:00';'12:61';'noon'} AS TIME)", "CAST({?'1 fortnight';'1 day 2'} AS INTERVAL)",
    "({dec} {?/;%} {dec})", "(- {int!})", "abs({int!})", "make_date(2024, {?1;13;-1}, 1)", "make_time({?25;1}, {?1;70}, 0)",
    "substr({text}, 1, {int=}::INT)", "('b' ~ {?'(';'[';'a**';'*'})", "('b' LIKE 'a' ESCAPE 'ab')",
    "CAST({dbl!} AS DECIMAL(6,2))", "decode({text!}, 'hex')",
    "chr({int=}::INT)", "({date} + {int!}::INT)",
    "({ts} AT TIME ZONE {?'Nowhere/None';'UTC'})", "CAST({text!} AS JSON)", "{?gcd;lcm}({int!}::BIGINT, {int!})", "factorial({?3;0;-1})",
    "(SELECT q.id FROM {table} q)", "(SELECT q.id FROM {table} q WHERE q.id < 2)", "width_bucket({dbl}, 1e0, {?1e0;2e0}, {?1;0;-1})",
    "ntile({?3;0;-1}) OVER (ORDER BY {key})",
    "sum({int}) OVER (ORDER BY {key} ROWS BETWEEN {?-1;1} PRECEDING AND CURRENT ROW)", "CAST({text!} AS BYTEA)",
    "to_date({text!}, 'YYYY-MM-DD')", "({iv} / {dbl})", "split_part({text}, 'a', {int=}::INT)", "lpad({text}, {int=}::INT)",
)
