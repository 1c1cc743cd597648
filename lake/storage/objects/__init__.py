"""Bytes by name: ``base`` says what a store promises, ``local`` is a folder, ``memory`` is a dict."""

from __future__ import annotations

from lake.storage.objects.base import ObjectInfo, ObjectMissing, ObjectStore, ObjectWriter, put_once
from lake.storage.objects.local import LocalStore
from lake.storage.objects.memory import MemoryStore

__all__ = ["LocalStore", "MemoryStore", "ObjectInfo", "ObjectMissing", "ObjectStore", "ObjectWriter", "put_once"]
