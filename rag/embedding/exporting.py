"""Exporting an embedding model to ONNX, and comparing the export with the model.

    python -m rag.embedding.exporting MODEL_FOLDER NAME OUT_FOLDER

is run by `export`, in a process of its own. It leaves an export in OUT_FOLDER, or a file
`refused` with the reason why this model can have none.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)

from rag.embedding import torch_engine
from rag.embedding.export import GRAPH, REFUSED, TOKENIZER, WEIGHTS, Export
from rag.embedding.onnx_engine import OnnxEngine
from rag.embedding.prompts import prompts_of
from rag.embedding.torch_engine import TorchEngine

MOST_APART = 1e-6
_OPSET = 17
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Cases, accents, other scripts, symbols, spaces, one word, and longer than any window.
_TRIED = (
    "What is tau-bench?",
    "Ünïcode naïveté: Ångström, façade, İstanbul, 𝛼 ≤ β₂, 10^{-3} and $\\mathcal{O}(n^2)$.",
    "大型语言模型 を 評価する; что это такое؟ 🙂",
    "  GraphRAG\twith \n odd   white space  ",
    "x",
    "We prune large language models by half without retraining. " * 3,
    "Attention is computed blockwise over key-value pairs. " * 1500,
)


class RefusedError(Exception):
    """A model that cannot be exported, or whose export gives other vectors."""


class _Pipeline(torch.nn.Module):
    """A model from token numbers to vectors of length 1."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        vectors = self.model(dict(zip(_INPUTS, given, strict=False)))["sentence_embedding"]
        vectors = vectors[:, : self.model.truncate_dim]
        return torch.nn.functional.normalize(vectors.float(), p=2, dim=1)


def export(engine: TorchEngine, folder: Path) -> None:
    """Export a loaded model to a folder. Raises RefusedError."""
    _refuse_unusual(engine.model)
    tokenizer: Any = engine.model.tokenizer
    features = engine.model.preprocess(["some words", "some more words"])
    inputs = tuple(name for name in _INPUTS if name in features)
    try:
        _write_graph(engine.model, tuple(features[name] for name in inputs), inputs, folder)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # torch and onnxruntime raise many kinds for what they lack
        raise RefusedError(_first_line(error)) from error
    tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    made = Export(
        folder=folder,
        dimension=engine.dimension,
        window=engine.window,
        pad=tokenizer.pad_token_id or 0,
        inputs=inputs,
        prompts=engine.prompts,
    )
    _compare(engine, OnnxEngine(made))
    made.write_facts()


def _refuse_unusual(model: SentenceTransformer) -> None:
    """Leave to sentence-transformers what does more than tokenize, transform and pool."""
    first, *others = model
    if type(first) is not Transformer:
        raise RefusedError(f"it begins with {type(first).__name__}")
    for module in others:
        if type(module) not in (Pooling, Dense, Normalize):
            raise RefusedError(f"it has a layer {type(module).__name__}")
        if isinstance(module, Pooling) and not module.include_prompt:
            raise RefusedError("it leaves its prompt out of the mean")
    tokenizer: Any = model.tokenizer
    if not getattr(tokenizer, "is_fast", False) or tokenizer.padding_side != "right":
        raise RefusedError("its tokenizer is of an unusual kind")


def _write_graph(
    model: SentenceTransformer,
    given: tuple[torch.Tensor, ...],
    inputs: tuple[str, ...],
    folder: Path,
) -> None:
    raw = folder / "raw.onnx"
    with torch.no_grad(), warnings.catch_warnings():
        # Of tracing, which `_compare` checks, and of the exporter's age: its successor needs
        # another package, and writes the same graph.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Pipeline(model).eval(),
            given,
            str(raw),
            dynamo=False,
            opset_version=_OPSET,
            input_names=list(inputs),
            output_names=["vectors"],
            dynamic_axes={
                **{name: {0: "text", 1: "token"} for name in inputs},
                "vectors": {0: "text"},
            },
        )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # What "extended" does holds on any CPU, so the folder may be shared by several machines.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / GRAPH)
    for key, value in (("file_name", WEIGHTS), ("min_size_in_bytes", "1024")):
        options.add_session_config_entry(
            f"session.optimized_model_external_initializers_{key}", value
        )
    onnxruntime.InferenceSession(str(raw), options, providers=["CPUExecutionProvider"])
    for part in folder.glob("*"):
        if part.name not in (GRAPH, WEIGHTS):
            part.unlink()


def _compare(engine: TorchEngine, exported: OnnxEngine) -> None:
    if engine.count_tokens(_TRIED) != exported.count_tokens(_TRIED):
        raise RefusedError("its tokens are counted otherwise")
    for texts in (_TRIED, *([text] for text in _TRIED)):
        apart = float(np.abs(engine.encode(texts) - exported.encode(texts)).max())
        if not apart <= MOST_APART:
            raise RefusedError(f"its vectors would be {apart:.0e} apart")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def main() -> int:
    model, name, out = sys.argv[1:]
    engine = torch_engine.load(model, device="cpu")
    # Not by the folder: that of a downloaded model is named by a commit.
    engine.prompts = prompts_of(engine.model.prompts, Path(name).name)
    try:
        export(engine, Path(out))
    except RefusedError as error:
        (Path(out) / REFUSED).write_text(str(error), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
