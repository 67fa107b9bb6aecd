"""The embedding model: two engines with the same vectors, and the export between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag.embedding import SentenceEmbedding, export, torch_engine
from rag.embedding.folders import digest
from rag.embedding.onnx_engine import OnnxEngine
from rag.embedding.prompts import Prompts, prompts_of
from rag.errors import EmbeddingError, UsageError
from rag.settings import DEFAULT_EMBED_MODEL

TEXTS = [
    "tau-bench",
    "Graph networks fight over-squashing. " * 40,
    "Ångström and 大型 models, $x^2$ — and so on",
    "We prune large language models by half.",
]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedders")


@pytest.fixture(scope="session")
def exported(cache: Path) -> SentenceEmbedding:
    """The packaged model, exported in this session."""
    embedding = SentenceEmbedding(DEFAULT_EMBED_MODEL, cache)
    embedding.prepare()
    return embedding


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model of random weights, with prompts and the first token's vector."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    parts = tmp_path_factory.mktemp("parts")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ":", ".", "query", "passage"]
    words += ["graph", "networks", "learn", "words", "##s"]
    (parts / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizerFast(str(parts / "vocab.txt"), model_max_length=32).save_pretrained(parts)
    shape = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    torch.manual_seed(1)
    BertModel(shape).save_pretrained(parts)
    transformer = Transformer(str(parts))
    model = SentenceTransformer(
        modules=[transformer, Pooling(16, "cls")],
        prompts={"query": "query: ", "passage": "passage: "},
        device="cpu",
    )
    folder = tmp_path_factory.mktemp("tiny") / "tiny-model"
    model.save(str(folder))
    return folder


def test_a_model_without_stated_prompts_gets_those_of_its_family() -> None:
    assert prompts_of({"query": "", "document": ""}, "e5-small-v2").query == "query: "
    assert prompts_of({}, "bge_small_en_v1.5").passage == ""
    assert prompts_of({"query": "find: ", "passage": "p: "}, "e5-base") == Prompts("find: ", "p: ")
    assert prompts_of({}, DEFAULT_EMBED_MODEL) == Prompts()


def test_the_digest_follows_the_contents_of_the_model(tmp_path: Path) -> None:
    model, cache = tmp_path / "model", tmp_path / "cache"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    (model / "README.md").write_text("words", "utf-8")
    first = digest(model, cache)
    assert digest(model, cache) == first
    (model / "README.md").write_text("other words", "utf-8")
    moved = shutil.copytree(model, tmp_path / "moved")
    os.utime(moved / "model.safetensors", (1, 1))
    assert digest(moved, cache) == digest(model, cache) == first
    (model / "model.safetensors").write_bytes(b"WEIGHTS")
    assert digest(model, cache) != first


def test_a_model_that_is_nowhere_has_no_export(tmp_path: Path) -> None:
    embedding = SentenceEmbedding(str(tmp_path / "nothing"), tmp_path / "cache")
    embedding.prepare()
    assert embedding.engine == "sentence-transformers"


def test_opening_an_index_imports_no_torch() -> None:
    code = "import rag.assistant, sys; print(*{name.split('.')[0] for name in sys.modules})"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert not {"torch", "transformers", "sentence_transformers"}.intersection(child.stdout.split())


@pytest.mark.slow
def test_the_llama_index_embedding_gives_the_same_vectors(exported: SentenceEmbedding) -> None:
    from rag.llamaindex import AbstractEmbedding

    embedding = AbstractEmbedding(exported)
    np.testing.assert_allclose(
        embedding.get_text_embedding_batch(TEXTS), exported.embed(TEXTS), atol=1e-6
    )
    np.testing.assert_allclose(
        embedding.get_query_embedding(TEXTS[3]), exported.embed_query(TEXTS[3]), atol=1e-6
    )


@pytest.mark.slow
def test_both_engines_give_the_same_vectors_and_counts(
    exported: SentenceEmbedding,
) -> None:
    model = torch_engine.load(DEFAULT_EMBED_MODEL, device="cpu")
    assert exported.engine == OnnxEngine.name
    vectors = exported.embed(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(exported.embed_query(TEXTS[0]), vectors[0], atol=1e-6)
    assert exported.count_tokens(TEXTS) == model.count_tokens(TEXTS)
    assert (exported.dimension, exported.window) == (model.dimension, model.window)


@pytest.mark.slow
def test_a_query_beyond_the_window_is_known_to_be(exported: SentenceEmbedding) -> None:
    assert exported.fits("tau " * (exported.window // 2))
    assert not exported.fits("squashing " * exported.window)


@pytest.mark.slow
def test_blanks_are_refused_and_nothing_gives_nothing(exported: SentenceEmbedding) -> None:
    assert exported.embed([]).shape == (0, exported.dimension)
    assert exported.count_tokens([]) == []
    with pytest.raises(UsageError, match="blank"):
        exported.embed(["words", " \n"])


@pytest.mark.slow
def test_threads_get_the_vectors_that_one_gets(exported: SentenceEmbedding) -> None:
    alone = [exported.embed_query(text) for text in TEXTS]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(exported.embed_query, TEXTS * 8))
    np.testing.assert_allclose(together, alone * 8, atol=1e-6)


@pytest.mark.slow
def test_an_export_is_used_again_and_remade_when_it_was_damaged(
    exported: SentenceEmbedding, cache: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(cache, tmp_path / "cache")  # keeps the times of the files
    stages: list[str] = []
    again = SentenceEmbedding(DEFAULT_EMBED_MODEL, copy)
    again.prepare(lambda stage, done, total: stages.append(stage))
    assert again.engine == OnnxEngine.name
    assert stages == []
    (graph,) = copy.glob("*/model.onnx")
    graph.write_bytes(graph.read_bytes()[:1000])
    damaged = SentenceEmbedding(DEFAULT_EMBED_MODEL, copy)
    assert damaged.engine == "sentence-transformers"
    damaged.prepare(lambda stage, done, total: stages.append(stage))
    assert damaged.engine == OnnxEngine.name
    assert stages
    np.testing.assert_allclose(damaged.embed(TEXTS), exported.embed(TEXTS), atol=1e-6)


@pytest.mark.slow
def test_an_export_that_cannot_be_loaded_gives_way_to_the_model(
    exported: SentenceEmbedding, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = shutil.copytree(cache, tmp_path / "cache")
    (graph,) = copy.glob("*/model.onnx")
    graph.write_bytes(b"no graph")
    facts = graph.with_name("export.json")
    known = json.loads(facts.read_text("utf-8"))
    stat = graph.stat()
    known["files"]["model.onnx"] = [stat.st_size, stat.st_mtime_ns]
    facts.write_text(json.dumps(known), "utf-8")
    embedding = SentenceEmbedding(DEFAULT_EMBED_MODEL, copy)
    np.testing.assert_allclose(embedding.embed(TEXTS), exported.embed(TEXTS), atol=1e-6)
    assert embedding.engine == "sentence-transformers"
    assert "damaged" in caplog.text


@pytest.mark.slow
def test_prompts_go_before_queries_and_passages(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from rag.embedding import exporting

    engine = torch_engine.load(str(tiny), device="cpu")
    exporting.export(engine, tmp_path)
    found = export.Export(
        tmp_path, engine.dimension, engine.window, 0, exporting._INPUTS, engine.prompts
    )
    model = SentenceTransformer(str(tiny), device="cpu")
    query = model.encode_query(["graph networks"], normalize_embeddings=True)
    passage = model.encode(["graph networks"], prompt_name="passage", normalize_embeddings=True)
    assert np.abs(query - passage).max() > 1e-3
    for each in (engine, OnnxEngine(found)):
        embedding = SentenceEmbedding(str(tiny), tmp_path)
        embedding._engine = each
        np.testing.assert_allclose(embedding.embed_query("graph networks"), query[0], atol=1e-6)
        np.testing.assert_allclose(embedding.embed(["graph networks"]), passage, atol=1e-6)
        # The passage prompt, two tokens, leaves less of the window to a passage.
        assert embedding.window == engine.window - 2


@pytest.mark.slow
def test_a_model_of_another_kind_stays_with_sentence_transformers(tiny: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    from rag.embedding import exporting

    engine = torch_engine.load(str(tiny), device="cpu")
    engine.model.append(LayerNorm(16))
    with pytest.raises(exporting.RefusedError, match="LayerNorm"):
        exporting.export(engine, tiny)


@pytest.mark.slow
def test_a_folder_that_is_no_model_is_an_error_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(EmbeddingError, match="RAG_EMBED_MODEL"):
        SentenceEmbedding(str(tmp_path), tmp_path / "cache").embed(["words"])


@pytest.mark.slow
def test_a_query_is_embedded_without_torch(exported: SentenceEmbedding, cache: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rag.embedding import SentenceEmbedding\n"
        f"vector = SentenceEmbedding({DEFAULT_EMBED_MODEL!r}, Path({str(cache)!r}))"
        ".embed_query('graph')\n"
        "print(*vector[:3], *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    first, second, third, *modules = child.stdout.split()
    heavy = {"torch", "transformers", "sentence_transformers", "llama_index"}
    assert not heavy.intersection(modules)
    found = [float(number) for number in (first, second, third)]
    np.testing.assert_allclose(found, exported.embed_query("graph")[:3], atol=1e-6)
