"""Every error that abstract-qa raises on purpose.

    RagError                      anything a user can act on; str(error) is one line
    ├── UsageError                a wrong argument, question or setting
    ├── SourceError               a file of abstracts that cannot be read
    ├── IndexError_               an index that cannot serve
    │   ├── IndexMissingError     nothing has been ingested there yet
    │   ├── IndexBusyError        another process writes the index
    │   ├── IndexMismatchError    built with another embedding model or schema, or damaged
    │   └── ServerError           a Chroma server that is away, refuses or fails
    ├── EmbeddingError            an embedding model that cannot be found or loaded
    ├── LLMError                  an LLM that cannot be loaded or does not answer properly
    └── SetupError                the local LLM cannot be installed, assembled or verified

Each message says what happened, which file, setting or address it concerns, and what to
do. Foreign exceptions are turned into these at the module that calls the foreign library.
"""

from __future__ import annotations


class RagError(Exception):
    """Base of all errors with a message meant for a user."""


class UsageError(RagError):
    """A wrong argument, question or setting."""


class SourceError(RagError):
    """A file of abstracts that cannot be read."""


class IndexError_(RagError):
    """An index that cannot serve; the underscore keeps the built-in name free."""


class IndexMissingError(IndexError_):
    """Nothing has been ingested at that place yet, or everything was removed."""


class IndexBusyError(IndexError_):
    """Another process writes the index, or serves it as the chat window.

    `url` and `token` address that process when it is a chat window that can do the work.
    """

    def __init__(self, message: str, url: str = "", token: str = "") -> None:
        super().__init__(message)
        self.url = url
        self.token = token


class IndexMismatchError(IndexError_):
    """The index was built with another embedding model or schema, or is damaged."""


class ServerError(IndexError_):
    """The Chroma server that holds the index is away, refuses this client, or fails."""


class EmbeddingError(RagError):
    """An embedding model that cannot be found or loaded."""


class LLMError(RagError):
    """An LLM that cannot be loaded, refuses, times out or sends garbage."""


class SetupError(RagError):
    """The local LLM cannot be installed, assembled or verified."""
