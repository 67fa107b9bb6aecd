"""The language of a question, and the few sentences of ours that a reader gets in it.

Short questions full of names mislead statistical detectors ("diffusion transformer" passes for
French), and a question that is wrongly taken for French would be answered in French. So a
question is English unless its script, a question word, or two function words say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class Phrases:
    """What an answer says in its own words. Each may hold one `{}` for what it speaks of."""

    unanswered: str
    named: str
    closest: str
    missing: str


NAMES: Mapping[str, str] = {
    "en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "es": "Spanish",
    "fr": "French", "de": "German", "it": "Italian", "pt": "Portuguese", "ru": "Russian",
    "ar": "Arabic",
}  # fmt: skip

_PHRASES: Mapping[str, Phrases] = {
    "en": Phrases(
        "The abstracts do not answer this question.",
        "The closest abstract, “{}”, says:",
        "The closest abstract says:",
        "The abstracts do not say: {}",
    ),
    "zh": Phrases(
        "这些摘要没有回答这个问题。",
        "最接近的摘要“{}”写道：",
        "最接近的摘要写道：",
        "摘要中没有说明：{}",
    ),
    "ja": Phrases(
        "これらの要旨はこの質問に答えていません。",
        "最も近い要旨「{}」の記述：",
        "最も近い要旨の記述：",
        "要旨に記載がないこと：{}",
    ),
    "ko": Phrases(
        "이 초록들은 이 질문에 답하지 않습니다.",
        "가장 가까운 초록 “{}”의 내용:",
        "가장 가까운 초록의 내용:",
        "초록에 나와 있지 않은 것: {}",
    ),
    "es": Phrases(
        "Los resúmenes no responden a esta pregunta.",
        "El resumen más cercano, «{}», dice:",
        "El resumen más cercano dice:",
        "Los resúmenes no dicen: {}",
    ),
    "fr": Phrases(
        "Les résumés ne répondent pas à cette question.",
        "Le résumé le plus proche, « {} », dit :",
        "Le résumé le plus proche dit :",
        "Les résumés ne disent pas : {}",
    ),
    "de": Phrases(
        "Die Abstracts beantworten diese Frage nicht.",
        "Das nächstliegende Abstract, „{}“, sagt:",
        "Das nächstliegende Abstract sagt:",
        "Die Abstracts sagen nicht: {}",
    ),
    "it": Phrases(
        "Gli abstract non rispondono a questa domanda.",
        "L'abstract più vicino, «{}», dice:",
        "L'abstract più vicino dice:",
        "Gli abstract non dicono: {}",
    ),
    "pt": Phrases(
        "Os resumos não respondem a esta pergunta.",
        "O resumo mais próximo, “{}”, diz:",
        "O resumo mais próximo diz:",
        "Os resumos não dizem: {}",
    ),
}

# Scripts in the order they decide: Japanese has Chinese characters too, Korean may.
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
# Fewer letters of a script are a name or a symbol.
_LETTERS = 2

_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to in is are was were what which who how why when where does do did can "
        "could for with that this it its they their from by on at as an be been has have any "
        "there between than not or if about into without a me do as no on all per "
        "son war hat die so",
        "es": "el la los las un una unos unas de del en y o que qué cómo cuál cuáles cuánto cuánta "
        "cuántos cuántas por para con sin se es son está están fue hay su sus al lo más como "
        "quién dónde cuándo puede pueden tiene tienen usa utiliza sobre entre existe funciona",
        "fr": "le la les un une des de du en et ou que qui quoi quel quelle quels quelles comment "
        "pourquoi combien par pour avec sans se est sont il elle ils elles au aux ce cette ces "
        "sur dans ne pas fait sa ses son leur peut peut-on peuvent quand où à entre y est-ce "
        "qu'est-ce comment",
        "de": "der die das den dem des ein eine einen einem einer eines und oder in im ist sind "
        "war "
        "wird werden was wer wie wo wann warum welche welcher welches welchen wieviel wieviele "
        "viele für mit ohne von vom zu zum zur auf an am aus bei nicht hat haben kann können gibt "
        "es sich man über durch macht bessere besser mehr",
        "it": "il lo la gli le un uno una di del della dei delle degli in e o che cosa come quale "
        "quali quanto quanti quante perché per con senza si è sono su sul sulla nel nella ha hanno "
        "può possono tra fra da dal dalla al alla",
        "pt": "o a os as um uma de do da dos das em e ou que como qual quais quanto quanta quantos "
        "quantas por para com sem se é são no na nos nas ao à não tem têm foi sobre entre "
        "pelo pela",
    }.items()
}
# One of these says it alone.
_TELLING = frozenset(
    "qué cuál cuáles cuánto cuánta cuántos cuántas cómo quién dónde cuándo quel quelle quels "
    "quelles comment pourquoi combien est-ce qu'est-ce welche welcher welches welchen "
    "wie wieviel wieviele "
    "warum wer wo quale quali quanto quanti perché quais quantos quantas "
    "ist explica erkläre explique "
    "macht gibt kann können existe existen hay peut-on a-t-on fait-il funciona "
    "puede peut peuvent fonctionne può esiste "
    "há pode".split()
)
# With its hyphens: the halves of "en-de" and "le-net" are no words.
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?:'(?=[^\W\d_])est-ce)?")


def language_of(text: str) -> str:
    """The ISO 639-1 code of a text's language; "en" when nothing says otherwise."""
    for language, letters in _SCRIPTS:
        if len(letters.findall(text)) >= _LETTERS:
            return language
    words = [word.casefold() for word in _LATIN_WORD.findall(text.replace("’", "'"))]
    counts = {language: _weight(words, known) for language, known in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda language: (counts[language], language == ENGLISH))
    return best if counts[best] >= 2 and counts[best] > counts[ENGLISH] else ENGLISH


def phrases(language: str) -> Phrases:
    """Our own sentences in a language; in English when they are not translated."""
    return _PHRASES.get(language, _PHRASES[ENGLISH])


def _weight(words: Sequence[str], known: frozenset[str]) -> int:
    english = _FUNCTION_WORDS[ENGLISH]
    return sum(
        2 if word in _TELLING else 1
        for word in words
        if word in known and (known is english or word not in english)
    )
