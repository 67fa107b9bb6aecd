"""Where the index is that the settings name."""

from __future__ import annotations

from rag.embedded import EmbeddedStore
from rag.served import ServedStore
from rag.server import ChromaServer
from rag.settings import Settings
from rag.store import Store


def store_of(settings: Settings) -> Store:
    """The store of the settings' index."""
    if settings.chroma_url is None:
        return EmbeddedStore(settings.home)
    return ServedStore(ChromaServer(settings), settings.home)
