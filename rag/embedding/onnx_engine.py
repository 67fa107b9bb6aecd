"""The engine that starts at once: an exported model, run by onnxruntime and tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from rag.embedding.export import GRAPH, TOKENIZER, Export

# A batch holds so many tokens, padding included: long texts come alone, sentences by the dozen.
# A core that has more at once works outside of its cache: one took 1.4 times as long at 1024
# tokens as at 256.
_BATCH_TOKENS = max(256, 128 * (os.cpu_count() or 1))


class UnusableExport(Exception):
    """An export that cannot be loaded: it was damaged after it was made."""


class OnnxEngine:
    """An exported model in this process."""

    name = "onnxruntime"

    def __init__(self, export: Export) -> None:
        """Raises UnusableExport."""
        # Several threads tokenize; without it the library warns in each child process.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
        self.dimension = export.dimension
        self.window = export.window
        self.prompts = export.prompts
        self._pad = export.pad
        self._inputs = export.inputs
        try:
            self._session = session(export)
            self._counting = Tokenizer.from_file(str(export.folder / TOKENIZER))
            self._cutting = Tokenizer.from_file(str(export.folder / TOKENIZER))
        except Exception as error:  # each library raises its own kinds, Exception among them
            raise UnusableExport(
                f"the export of the embedding model in {export.folder} is damaged; "
                "the next `rag ingest` makes it anew"
            ) from error
        for tokenizer in (self._counting, self._cutting):
            tokenizer.no_padding()
            tokenizer.no_truncation()
        special = self._cutting.num_special_tokens_to_add(False)
        self._cutting.enable_truncation(export.window + special)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encoded = self._counting.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in encoded]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        encoded = self._cutting.encode_batch_fast(list(texts))
        lengths = [len(encoding) for encoding in encoded]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for rows in _batches(lengths):
            ids = np.full((len(rows), lengths[rows[0]]), self._pad, np.int64)
            mask = np.zeros_like(ids)
            for row, place in enumerate(rows):
                ids[row, : lengths[place]] = encoded[place].ids
                mask[row, : lengths[place]] = 1
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            feed = {name: given[name] for name in self._inputs}
            vectors[rows] = self._session.run(None, feed)[0]
        return vectors


def session(export: Export) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    # The graph was optimised when it was made.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        str(export.folder / GRAPH), options, providers=["CPUExecutionProvider"]
    )


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts of about equal length, the longest of a batch first."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
