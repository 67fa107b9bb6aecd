"""Sentences that speak to a model rather than to a reader.

An abstract may be written to steer whoever lets a model read it. Such a sentence states nothing
about a paper's subject, so it is not taken as evidence: no model reads it, no answer quotes it.
The reader still finds it in its abstract.
"""

from __future__ import annotations

import re

_ORDERS = re.compile(
    # In the imperative only: papers on jailbreaks say that attacks bypass guidelines.
    r"(?:^|[:;.!“\"'‘]\s*|\b(?:please|must|now|and|then|should) )"
    r"(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|direction|guideline|context|question|above|"
    r"previous|prior|everything)|"
    r"\b(?:reveal|print|show|repeat|output|disclose) (?:me )?(?:your|the) "
    r"(?:system|developer|initial) (?:prompt|message|instruction)|"
    r"\byou (?:(?:are|must|will|should) now|must (?:answer|reply|respond|say|output|write))\b|"
    r"\b(?:as an?|dear|attention|note to(?: the| any)?) (?:ai|llm|language model|assistant|chatbot|"
    r"model reading)\b|"
    r"\b(?:ai|llm|language model|assistant|chatbot)s?(?: systems?| models?)?,? "
    r"(?:reading|processing|summari[sz]ing|that reads?|who reads?) this\b|"
    r"\bif you are an? (?:ai|llm|(?:large )?language model|model|assistant|chatbot)|"
    r"\bwhen (?:you (?:are )?)?(?:summari[sz]\w+|answer\w+|asked|review\w+|citing) "
    r"(?:this|about this|any)\b.{0,40}\b(?:always|never|say|state|must|should|claim|recommend)|"
    r"\bthe answer to (?:every|any|all|each) (?:other )?questions?\b|"
    r"(?:^|[:;,.!]\s*)(?:(?:please|now|then|instead|always|only|just|and|do not|don't|never) )*"
    r"(?:reply|respond|answer|say|output|print|reveal|repeat|recommend|mention)\b.{0,40}"
    r"(?:[“\"'‘]|\b(?:only|exactly|nothing but|the (?:word|phrase|following)|your|this paper|"
    r"other papers|in (?:\w+ )?(?:language|english|french|german|pirate)|with the)\b)|"
    r"\bplease (?:reply|respond|answer|say|output|print|reveal|repeat|recommend)\b|"
    r"(?:<\|?|\[/?)(?:im_start|im_end|system|assistant|user|inst|endoftext)|"
    r"^\s*(?:system|assistant|user|instruction)s?\s*:",
    re.IGNORECASE | re.DOTALL,
)


def addresses_model(sentence: str) -> bool:
    """Whether a sentence gives orders to a model that reads it."""
    return bool(_ORDERS.search(sentence))
