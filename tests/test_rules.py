"""Every rule of the SQL document about tables, and of the HTTP document, has a case that names it."""

from __future__ import annotations

from tests.rules import RULES, named_rules


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    named = list(named_rules())
    unknown = [case for case in named if case[1] not in RULES[case[0]]]
    assert unknown == [], "cases name rules that are none"
    found = {case[:2] for case in named}
    assert [(section, rule) for section, rules in RULES.items() for rule in rules if (section, rule) not in found] == []
