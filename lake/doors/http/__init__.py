"""The HTTP door.

Reading order: ``routes`` (the table of endpoints), ``app`` (sign-in, drain, errors around them), ``sql`` and ``pages``
(queries), ``encode`` (answers), ``append`` and ``rows`` (rows in), ``define`` and ``operations``.
"""
