"""How they ask: one package for each protocol. A door knows Node, Session, Result and the foundation, and nothing deeper.

Reading order: ``http`` (aiohttp: queries, appends, definitions, operations), ``postgres`` (the wire protocol).
"""
