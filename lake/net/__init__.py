"""Which node: a lake served by a process, and one day by many.

Reading order: ``node`` (the waist every door talks to), ``lifecycle`` (starting, serving, draining).
"""
