"""What the text means: text -> AST -> bound plan -> optimised plan.

    parser     text to ``ast`` (grammars/*.lark, build/)
    bind       ``ast`` to ``plan`` and ``bound``: names, types, overloads
    optimizer  ``plan`` to a better ``plan``
    registry   the functions of the dialect, filled by the engine
    catalog    what a plan needs to know of tables
"""
