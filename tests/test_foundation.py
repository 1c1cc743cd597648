"""Settings, roles, time, metrics and the log: what nothing else of the lake can do without."""

from __future__ import annotations

import doctest
import itertools
import re
import threading

import pytest

from lake import clock, config, errors, log, metrics, roles, types
from lake.arrow_names import arrow_name, parse_arrow_name
from lake.clock import SystemClock, VirtualClock
from lake.config import SETTINGS, Machine, load
from lake.errors import InsufficientPrivilege, InvalidParameter
from lake.roles import Principal, Role, Tokens

# The variables of the specification's table and of its sections, and the flags of `serve`.
VARIABLES = """
MEMORY_GB CACHE_DIR CACHE_GB CACHE_MB HOT_GB FILES_CACHE_MB FUNCTION_CACHE_MB TEMP_MB CODEC CORES SPREAD_MB BROADCAST_MB
SKEW_MB SPILL_MB LINK JOIN_ORDER SQL_OPTIONS GC_SECS BUCKET_REQUESTS PURGE_ROWS PROCEDURES WORKER_MB WORKER_IDLE_SECS
WORKER_START_SECS PYTHON PYTHON_PROBE_SECS BIN CONFIG_DIR CONSOLE_EXTENSIONS HISTORY HISTORY_RATE HISTORY_DAYS SLOW_MS
LEARN_MS AI_URL AI_KEY AI_MODEL EMBED_MODEL AI_CALLS AI_TIMEOUT_SECS JOB TRACE_PG PAGES_MB DRAIN_SECS DRAIN_GRACE_SECS
DATABASE_IDLE_SECS SESSION_IDLE_SECS SESSION_HOURS TXN_IDLE_SECS FILE_VERSIONS FILE_VERSIONS_DAYS READ_TOKEN WRITE_TOKEN
ADMIN_TOKEN TOKEN USER_QUERIES USER_TIMEOUT SECRET_KEY SECRET_KEY_PREVIOUS KMS_COMMAND AUDIT AUDIT_DAYS TLS TLS_CERT
TLS_KEY TLS_CA RUNS_DAYS INLINE_KB
""".split()
WRITTEN = "OWNER_KEY PUBLISH CHANGELOG_SECS FSYNC REPLICAS TRIES SERVER_URL".split()
FLAGS = """
addr pg kafka flight python read-token write-token admin-token tls-cert tls-key tls-ca tier-secs reader default lakes
memory-gb cache-dir cache-gb ack replicas fsync publish flush-ms task-ms retain-secs changelog-secs backlog
stop-with-stdin advertise attach attach-found lake kafka-advertise
""".split()


@pytest.mark.parametrize("module", [clock, config, errors, roles, types], ids=lambda module: module.__name__)
def test_examples_hold(module: object) -> None:
    """The examples in the docstrings answer what they show."""
    failed, _ = doctest.testmod(module)  # type: ignore[arg-type]
    assert failed == 0


def test_every_variable_and_flag_is_declared_once() -> None:
    """Spec: HTTP and operations, Limits; What the service does 7."""
    variables = [row.env for row in SETTINGS if row.env]
    flags = [name for row in SETTINGS if row.flag for name in (row.flag, *row.aliases)]
    assert len(set(variables)) == len(variables)
    assert len(set(flags)) == len(flags)
    assert {f"LAKE_{name}" for name in VARIABLES} <= set(variables)
    assert set(FLAGS) <= set(flags)
    written = {row.written for row in SETTINGS} | set(config.WRITTEN_ONLY)
    assert {f"LAKE_{name}" for name in WRITTEN} <= written
    assert all(row.doc for row in SETTINGS)


def test_variables_of_the_service_itself_have_no_effect() -> None:
    """Spec: HTTP and operations, Limits: set by the service itself."""
    set_by_hand = load({f"LAKE_{name}": "7" for name in WRITTEN}, {})
    for row in SETTINGS:
        if row.written and row.name != "owner_key":
            assert getattr(set_by_hand, row.name) == row.default
    assert set_by_hand.owner_key != "7"


@pytest.mark.parametrize("text", ["", "plenty", "-1", "nan", "inf", "1.5", "0x10"])
def test_an_unreadable_number_takes_its_default(text: str) -> None:
    """Spec: HTTP and operations, Limits: a number that is unset or not a number takes its default. HTTP Limits 3."""
    assert load({"LAKE_PAGES_MB": text}, {}).pages_mb == 256


def test_a_flag_wins_and_an_empty_token_is_unset() -> None:
    """Spec: HTTP and operations, Roles and tokens 2. HTTP Rights 5."""
    environ = {"LAKE_READ_TOKEN": "from-variable", "LAKE_WRITE_TOKEN": "", "LAKE_ADMIN_TOKEN": "a"}
    settings = load(environ, {"read-token": "from-flag", "admin_token": ""})
    assert (settings.read_token, settings.write_token, settings.admin_token) == ("from-flag", None, "a")
    assert "from-flag" not in repr(settings)


def test_flags_are_read_by_their_kind() -> None:
    """Numbers, switches, lists and words; either spelling of a name; a flag that was not given is None."""
    given = {"tier-secs": "0.5", "reader": True, "attach": ["a=b"], "ack": "replicated", "dir": "x", "pg": None}
    settings = load({}, given)
    assert (settings.tier_secs, settings.reader, settings.attach, settings.lake) == (0.5, True, ("a=b",), "x")
    assert settings.inline_kb == 1024
    assert load({}, {"ack": "replicated", "replicas": 1}).inline_kb == 64


@pytest.mark.parametrize(
    "options", [{"tier-secs": "soon"}, {"ack": "perhaps"}, {"no-such": 1}, {"reader": "maybe"}, {"backlog": "-5"}]
)
def test_flags_that_cannot_be_read_are_refused(options: dict[str, object]) -> None:
    """Somebody has just typed it, so it is told."""
    with pytest.raises(InvalidParameter):
        load({}, options)


def test_defaults_follow_the_machine() -> None:
    """Memory is a third of the machine's, hot columns a quarter of that, procedures four a core."""
    here = Machine.here({"HOME": "/nobody"})
    settings = load({"HOME": "/nobody"}, {})
    assert settings.memory_gb == pytest.approx(here.memory_bytes / 3 / 2**30)
    assert settings.hot_gb == pytest.approx(settings.memory_gb / 2)
    assert settings.procedures == 4 * here.cores
    assert 0 <= settings.cache_gb <= 20
    assert settings.config_dir.startswith("/nobody")
    with pytest.raises(AttributeError):
        settings.cores = 1  # type: ignore[misc]


def test_roles_nest() -> None:
    """Spec: HTTP and operations, Roles and tokens 3."""
    for held, asked in itertools.product(Role, Role):
        assert Principal("u", held).may(asked) == (held >= asked)
    with pytest.raises(InsufficientPrivilege, match="this token may not write"):
        Principal("u", Role.READ).require(Role.WRITE)
    with pytest.raises(InsufficientPrivilege, match="an admin token, or a superuser, does"):
        Principal("u", Role.WRITE).require(Role.ADMIN)


def test_tokens_sign_in() -> None:
    """Spec: HTTP and operations, Roles and tokens 1."""
    assert not Tokens().are_set
    tokens = Tokens(read="r", write="w", admin="a")
    assert [tokens.role_of(token) for token in "rwa"] == [Role.READ, Role.WRITE, Role.ADMIN]
    assert tokens.principal(Role.ADMIN).superuser and not tokens.principal(Role.WRITE).superuser
    assert [tokens.role_of(wrong) for wrong in ("", "R", "é", "\ud800")] == [None] * 4


def test_clocks_move_on() -> None:
    """A wall clock answers microseconds; a virtual one waits in no time and repeats its chance."""
    system = SystemClock()
    assert system.now() > 1_700_000_000_000_000
    before = system.monotonic()
    system.sleep(0)
    assert system.monotonic() >= before
    left, right = VirtualClock(5, seed=3), VirtualClock(5, seed=3)
    left.sleep(3600)
    assert (left.now(), left.monotonic(), right.now()) == (3_600_000_005, 3600.0, 5)
    assert left.random.random() == right.random.random()


def test_metrics_are_counted_by_every_thread() -> None:
    """Adding from several threads loses nothing, and the text is the exposition format."""
    before = metrics.STATEMENTS.value(tag="T", outcome="o")
    threads = [
        threading.Thread(target=lambda: [metrics.STATEMENTS.add(tag="T", outcome="o") for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.STATEMENTS.value(tag="T", outcome="o") == before + 2000
    metrics.ROLE.set_only(1, role="follower")
    metrics.ROLE.set_only(1, role="leader")
    text = metrics.expose()
    assert 'lake_role{role="leader"} 1\n' in text and "follower" not in text
    for line in text.splitlines():
        assert re.fullmatch(r'#.*|[a-z_]+(\{([a-z_]+="[^"\n]*",?)+\})? [+\-\d.einfINF]+', line), line


def test_histograms_answer_quantiles() -> None:
    """A quantile is right within its bucket, whose edges are 1.5 times apart."""
    histogram = metrics.Histogram("lake_test_seconds", "A histogram of this test.")
    try:
        assert histogram.quantile(0.5) == 0.0
        for step in range(1, 1001):
            histogram.observe(step / 1000)
        assert histogram.quantile(0.5) == pytest.approx(0.5, rel=0.5)
        assert histogram.quantile(0.99) == pytest.approx(0.99, rel=0.5)
        assert "lake_test_seconds_count 1000" in histogram.expose()
    finally:
        del metrics.METRICS["lake_test_seconds"]


def test_label_sets_are_limited() -> None:
    """What callers send cannot fill the memory: past the limit they are counted together."""
    counter = metrics.Counter("lake_test_total", "A counter of this test.", ("path",))
    try:
        for number in range(metrics.LABEL_SETS_MAX + 50):
            counter.add(path=f"/{number}")
        assert counter.value(path="other") == 50
        assert len(counter.expose()) == metrics.LABEL_SETS_MAX + 1
    finally:
        del metrics.METRICS["lake_test_total"]


def test_a_log_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a client sent, it cannot start a line of its own."""
    at = VirtualClock(1_772_366_400_123_000)
    assert log.line("info", "node serves", {"addr": "127.0.0.1:8080", "of": "a\nb", "ms": 1.5}, at) == (
        '2026-03-01T12:00:00.123Z info node serves addr=127.0.0.1:8080 of="a\\nb" ms=1.500'
    )
    try:
        raise ValueError("two\nlines")
    except ValueError as failure:
        log.error("statement failed", failure, sqlstate="XX000")
    written = capsys.readouterr().err
    assert written.count("\n") == 1 and "ValueError" in written


def test_equal_types_are_not_unequal() -> None:
    """What a type is spelled as makes no other type of it, by either sign."""
    one, other = types.Decimal(7, 2), types.Decimal(7, 2, spelled="Decimal32(7, 2)")
    assert one == other and (one != other) is False and hash(one) == hash(other)
    assert types.List(one) == types.List(other) and (types.List(one) != types.List(other)) is False
    assert one != types.Decimal(7, 3) and (one == types.Decimal(7, 3)) is False
    assert one != 7 and (one == 7) is False



@pytest.mark.parametrize(
    "type",
    [
        types.BIGINT, types.NULL, types.Decimal(15, 2), types.List(types.NULL),
        types.Map(types.TEXT, types.List(types.Struct((("a", types.BIGINT), ("b", types.TIMESTAMPTZ))))),
    ],
)
def test_arrow_names_are_read_back(type: types.Type) -> None:
    """An Arrow name stands for the type that it was written for."""
    assert parse_arrow_name(arrow_name(type)) == type
