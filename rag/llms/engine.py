"""Engine: one GGUF model in llama.cpp. Token numbers in, logits out, one caller at a time.

What was evaluated last stays in the model's memory, so a call pays only for the tokens
after the prefix that it shares with the call before.

The `Llama` class of llama-cpp-python is not used: quiet, it sends the whole process's
stdout and stderr to nowhere while it loads, and it sets no abort callback.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag.errors import LLMError

# OpenMP reads this once, when llama.cpp is loaded: how often its threads look for each other
# before they sleep. By default they spin for long, and beside any other busy process a token
# then takes many times as long; without spinning, a quiet machine writes a quarter slower.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import llama_cpp

_BATCH = 512
_WATCH_S = 0.05
_ABORTED = 2
_LOG_ERROR = 4
_CHATML = b"chatml"
_log: deque[str] = deque(maxlen=20)


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _keep_log(level: int, text: bytes, user_data: object) -> None:
    line = text.decode("utf-8", "replace").strip()
    if level == _LOG_ERROR and line:
        _log.append(line)


class Cancelled(Exception):
    """The caller's event was set while the model evaluated."""


class Engine:
    """A loaded model with a memory of `context_window` tokens. Not safe for two threads.

    LLMError: the file is not a model that this llama.cpp can load, or memory is short.
    """

    def __init__(self, path: Path, context_window: int) -> None:
        llama_cpp.llama_log_set(_keep_log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.context_window = context_window
        self._tokens: list[int] = []
        self._fresh = False  # whether llama.cpp holds the logits that follow self._tokens
        self._abort = ctypes.create_string_buffer(2)
        model_params = llama_cpp.llama_model_default_params()
        # The abort callback, and so Stop, works on the CPU alone.
        model_params.n_gpu_layers = 0
        # Mapped, the file's pages stay beside the copies that are laid out for this CPU.
        model_params.load_mode = llama_cpp.LLAMA_LOAD_MODE_NONE
        # Code for AMX, where it was built in, crashes in virtual machines that only seem to
        # have it; without the extra buffer types llama.cpp does not use it.
        model_params.use_extra_bufts = b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info()
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), model_params)
        if not self._model:
            raise LLMError(f"cannot load the model {path}: {_reason()}; check the file")
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._n_vocab = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self._context = llama_cpp.llama_init_from_model(self._model, self._context_params())
        if not self._context:
            llama_cpp.llama_model_free(self._model)
            raise LLMError(f"cannot start the model {path}: {_reason()}; free some memory")
        self._memory = llama_cpp.llama_get_memory(self._context)
        template: bytes | None = llama_cpp.llama_model_chat_template(self._model, None)
        self.template = template or _CHATML

    def _context_params(self) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = self.context_window
        params.n_batch = params.n_ubatch = _BATCH
        params.n_threads = params.n_threads_batch = _cores()
        # llama.cpp asks before each of some thousand graph nodes a token. A Python callback
        # would take the interpreter's lock each time and crawl while other threads compute,
        # so strlen answers: the length of an empty C string is false, of "\1" true.
        params.abort_callback = llama_cpp.ggml_abort_callback(_strlen_address())
        params.abort_callback_data = ctypes.addressof(self._abort)
        return params

    def close(self) -> None:
        """Free the model's memory; the engine cannot be used after. May be called again."""
        if self._context:
            llama_cpp.llama_free(self._context)
            llama_cpp.llama_model_free(self._model)
            self._context = None

    def tokens(self, text: str, *, special: bool = True) -> list[int]:
        """`text` as token numbers. `special` reads `<|im_start|>` and the like as control."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        buffer = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(
            self._vocab, data, len(data), buffer, room, special, special
        )
        if count < 0:
            raise LLMError("the model cannot read this prompt; shorten it")
        return list(buffer[:count])

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for, possibly a part of a UTF-8 character."""
        buffer = ctypes.create_string_buffer(256)
        size = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(size, 0)]

    def ends(self, token: int) -> bool:
        """Whether the token ends an answer."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    def evaluate(
        self, tokens: Sequence[int], cancel: threading.Event | None = None
    ) -> npt.NDArray[np.float32]:
        """The logits of the token after `tokens`, (n_vocab,); valid until the next call.

        Cancelled: `cancel` was set; what was evaluated until then is kept or forgotten
        whole, so the next call is right. LLMError: too many tokens, or llama.cpp fails.
        """
        if len(tokens) > self.context_window:
            raise LLMError(
                f"the prompt has {len(tokens)} tokens and the model reads {self.context_window}; "
                "ask a shorter question"
            )
        if not tokens:
            raise LLMError("the prompt is empty; ask a question")
        if not (self._fresh and self._tokens == list(tokens)):
            self._fresh = False
            self._read(tokens, cancel)
            self._fresh = True
        logits = llama_cpp.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(logits, shape=(self._n_vocab,))

    def _read(self, tokens: Sequence[int], cancel: threading.Event | None) -> None:
        keep = min(_common(self._tokens, tokens), len(tokens) - 1)
        if not llama_cpp.llama_memory_seq_rm(self._memory, 0, keep, -1):
            llama_cpp.llama_memory_clear(self._memory, False)
            keep = 0
        del self._tokens[keep:]
        with self._watched(cancel):
            for start in range(keep, len(tokens), _BATCH):
                self._decode(tokens[start : start + _BATCH], cancel)

    def _decode(self, batch: Sequence[int], cancel: threading.Event | None) -> None:
        if cancel is not None and cancel.is_set():
            raise Cancelled
        array = (llama_cpp.llama_token * len(batch))(*batch)
        code = llama_cpp.llama_decode(
            self._context, llama_cpp.llama_batch_get_one(array, len(batch))
        )
        if code == 0:
            self._tokens.extend(batch)
            return
        # A failed call may leave a part of its batch in memory, behind what we count.
        llama_cpp.llama_memory_seq_rm(self._memory, 0, len(self._tokens), -1)
        if code == _ABORTED:
            raise Cancelled
        raise LLMError(f"the local model failed ({_reason(f'code {code}')}); ask again")

    @contextmanager
    def _watched(self, cancel: threading.Event | None) -> Iterator[None]:
        """Carry `cancel` over to llama.cpp while it computes outside Python."""
        self._abort.value = b""
        if cancel is None:
            yield
            return
        finished = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(cancel, finished), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()
            self._abort.value = b""

    def _watch(self, cancel: threading.Event, finished: threading.Event) -> None:
        while not finished.wait(_WATCH_S):
            if cancel.is_set():
                self._abort.value = b"\1"
                return

    def grammar(self, text: str) -> Grammar:
        """A constraint on what follows, from GBNF text with the rule `root`.

        LLMError: the text is no grammar.
        """
        sampler = llama_cpp.llama_sampler_init_grammar(self._vocab, text.encode(), b"root")
        if not sampler:
            raise LLMError(f"the answer grammar cannot be read: {_reason()}")
        return Grammar(sampler, self._n_vocab)


class Grammar:
    """Where a text stands in a grammar. Close it."""

    def __init__(self, sampler: Any, n_vocab: int) -> None:
        self._sampler = sampler
        self._all = np.zeros(n_vocab, dtype=_CANDIDATE)
        self._all["id"] = np.arange(n_vocab)

    def best(self, logits: npt.NDArray[np.float32]) -> int:
        """The likeliest token that the grammar allows next."""
        # The whole vocabulary is only checked when the likeliest token does not fit.
        best = int(np.argmax(logits))
        one = self._all[best : best + 1].copy()
        one["logit"] = logits[best]
        self._apply(one)
        if np.isfinite(one["logit"][0]):
            return best
        candidates = self._all
        candidates["logit"] = logits
        self._apply(candidates)
        return int(np.argmax(candidates["logit"]))

    def accept(self, token: int) -> None:
        """Move on by one token that `best` returned."""
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Free the grammar; may be called again."""
        if self._sampler:
            llama_cpp.llama_sampler_free(self._sampler)
            self._sampler = None

    def _apply(self, candidates: npt.NDArray[Any]) -> None:
        data = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(
            data=data, size=len(candidates), selected=-1, sorted=False
        )
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))


def chat_prompt(template: bytes, messages: Sequence[tuple[str, str]]) -> str:
    """(role, content) pairs in an engine's chat template, ending where the model answers."""
    chat = (llama_cpp.llama_chat_message * len(messages))()
    for slot, (role, content) in zip(chat, messages, strict=True):
        slot.role, slot.content = role.encode(), content.encode("utf-8", "replace")
    size = sum(len(slot.role) + len(slot.content) + 256 for slot in chat)
    buffer = ctypes.create_string_buffer(size)
    # llama.cpp knows the common templates by sight; ChatML stands in for the others.
    for chosen in (template, _CHATML):
        used = llama_cpp.llama_chat_apply_template(chosen, chat, len(messages), True, buffer, size)
        if used >= 0:
            return buffer.raw[:used].decode("utf-8", "replace")
    raise LLMError("the messages cannot be put in the model's chat template; ask differently")


_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    for position, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return position
    return min(len(a), len(b))


def _cores() -> int:
    """Cores that this process may use; hyper-threads of one core are counted once."""
    if not hasattr(os, "sched_getaffinity"):
        return max(1, (os.cpu_count() or 2) // 2)
    allowed = os.sched_getaffinity(0)
    cores = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text())
        except OSError:
            return len(allowed)
    return len(cores)


def _strlen_address() -> int:
    library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    address = ctypes.cast(library.strlen, ctypes.c_void_p).value
    assert address is not None
    return address


def _reason(otherwise: str = "no reason given") -> str:
    return _log[-1] if _log else otherwise
