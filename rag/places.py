"""Where the index is that the settings name."""

from __future__ import annotations

from rag.embedded import EmbeddedStore
from rag.settings import Settings
from rag.store import Store


def store_of(settings: Settings) -> Store:
    """The store of the settings' index."""
    return EmbeddedStore(settings.home)
