"""What LlamaIndex asks for: a query engine and a retriever over an open index, and its embedding.

Imported when one of them is wanted: LlamaIndex takes seconds, which a search need not wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import PrivateAttr

from rag.answering import DEFAULT_OPTIONS, last_of, stream_answer
from rag.answers import Hit
from rag.embedding import SentenceEmbedding
from rag.index import Index
from rag.llms import Writer
from rag.records import Record
from rag.retrieval import retrieve

# LlamaIndex hands over so many texts at a time.
_EMBEDDED_TOGETHER = 256


class AbstractRetriever(BaseRetriever):
    """A LlamaIndex retriever over an open index: one node an abstract, best first."""

    def __init__(self, index: Index, k: int = 10) -> None:
        super().__init__()
        self._abstracts = index
        self._k = k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = retrieve(self._abstracts, query_bundle.query_str, self._k)
        return as_nodes(found.hits)


def as_nodes(hits: Iterable[Hit]) -> list[NodeWithScore]:
    """Hits as LlamaIndex nodes; the metadata names the paper and is kept out of prompts."""
    return [NodeWithScore(node=_node(hit.record), score=hit.score) for hit in hits]


def _node(record: Record) -> TextNode:
    metadata = {
        "label": record.label,
        "title": record.title,
        "authors": list(record.authors),
        "year": record.year,
        "path": record.source.path,
        "ordinal": record.source.ordinal,
    }
    return TextNode(
        id_=record.id,
        text=record.abstract,
        metadata=metadata,
        excluded_llm_metadata_keys=list(metadata),
        excluded_embed_metadata_keys=list(metadata),
    )


class AbstractQueryEngine(BaseQueryEngine):
    """A LlamaIndex query engine over an open index.

    `response.response` is the answer's text, `response.source_nodes` the retrieved abstracts,
    and `response.metadata["answer"]` the Answer itself.
    """

    def __init__(self, index: Index, writer: Writer | None, k: int = 10) -> None:
        super().__init__(callback_manager=CallbackManager())
        self._abstracts = index
        self._writer = writer
        self._k = k

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        options = replace(DEFAULT_OPTIONS, k=self._k)
        question = query_bundle.query_str
        answer = last_of(stream_answer(self._abstracts, self._writer, question, (), options))
        nodes = as_nodes(answer.retrieved)
        return Response(answer.text, source_nodes=nodes, metadata={"answer": answer})

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        # In a thread: a local LLM would hold the event loop, and every other user, for seconds.
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


class AbstractEmbedding(BaseEmbedding):
    """The embedding model of an index as a LlamaIndex embedding.

    A query and a text get the prompts that the model was trained with. Vectors have length 1.
    """

    _embedding: SentenceEmbedding = PrivateAttr()

    def __init__(self, embedding: SentenceEmbedding) -> None:
        super().__init__(model_name=embedding.model_name, embed_batch_size=_EMBEDDED_TOGETHER)
        self._embedding = embedding

    def _get_query_embedding(self, query: str) -> list[float]:
        return _floats(self._embedding.embed_query(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return _floats(self._embedding.embed([text])[0])

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [_floats(vector) for vector in self._embedding.embed(texts)]


def _floats(vector: np.ndarray) -> list[float]:
    return [float(number) for number in vector]
