from __future__ import annotations

import pytest

from rag.languages import language_of, phrases


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "A-Bench 一共收集了多少张图像？"),
        ("ja", "SVDQuantは何ビットですか"),
        ("ko", "τ-bench에서 gpt-4o의 성공률은?"),
        ("es", "¿Cuántas imágenes contiene A-Bench?"),
        ("es", "como funciona SVDQuant"),
        ("fr", "Comment publier un graphe sans exposer ses nœuds ?"),
        ("fr", "Peut-on détecter un LLM filigrané ?"),
        ("de", "Was macht WALoss?"),
        ("de", "Wie viele Methoden übertrifft der Angriff?"),
        ("pt", "O que é o AbNovo?"),
    ],
)
def test_languages_are_told_from_script_and_function_words(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "What is SVDQuant?",
        "diffusion transformer",
        "tau bench pass^8 retail",
        "multi lora conflicts image gen",
        "de novo antibody design in vivo",
        "WMT en-de translation with transformers",
        "comment on this paper",
        "Poincaré embeddings",
        "does τ-bench use μP?",
        "",
    ],
)
def test_keywords_names_and_symbols_stay_english(text: str) -> None:
    assert language_of(text) == "en"


@pytest.mark.parametrize("language", ["en", "zh", "ja", "ko", "es", "fr", "de", "it", "pt"])
def test_our_own_sentences_have_a_place_for_what_they_speak_of(language: str) -> None:
    words = phrases(language)
    assert words.named.count("{}") == words.missing.count("{}") == 1
    assert "{}" not in words.unanswered + words.closest
    assert language == "en" or words.unanswered != phrases("en").unanswered
