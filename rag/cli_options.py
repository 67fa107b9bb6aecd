"""Options that several commands of `rag` take, and the index they name."""

from __future__ import annotations

import click


def chosen_index() -> str | None:
    index: str | None = click.get_current_context().find_root().obj
    return index


def _remember(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.find_root().obj = value


index_option = click.option(
    "--index",
    metavar="DIR",
    expose_value=False,
    callback=_remember,
    help="Folder of the index.  [default: RAG_INDEX, else in the user's data directory]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
llm_option = click.option(
    "--llm",
    metavar="LLM",
    help="extractive, local, FILE.gguf, openai:MODEL, ollama:MODEL or anthropic:MODEL.  "
    "[default: RAG_LLM, else local when installed, else extractive]",
)
