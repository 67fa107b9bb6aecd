"""The page: Gradio components around the chat, and which event does what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import gradio as gr

from ui.chat import Turns, messages, respond, stopped
from ui.filtering import BOXES, criteria, in_words
from ui.render import header_html, welcome_html, writer_html
from ui.uploads import add_files

if TYPE_CHECKING:
    from rag.assistant import Assistant
    from rag.llms.install import InstallStatus

EXAMPLES = (
    "What does τ-bench test, and in which domains?",
    "How much memory does SVDQuant save on FLUX.1?",
    "How do BuNN and PIORF tackle over-squashing?",
    "How does PreWorld do without costly 3D labels?",
)
ASKING_AT_ONCE = 8
_FILTERS = "Filters"
_MATHS: list[dict[str, str | bool]] = [
    {"left": r"\(", "right": r"\)", "display": False},
    {"left": r"\[", "right": r"\]", "display": True},
]


class Preparation(Protocol):
    """The local LLM being made ready behind the window."""

    def status(self) -> InstallStatus:
        """Where it stands now."""
        ...


def build_page(assistant: Assistant, preparation: Preparation | None = None) -> gr.Blocks:
    """The collection and the writer above, the conversation, the question box below."""

    def writer() -> tuple[str, gr.Timer]:
        state = preparation.status() if preparation else None
        line = writer_html(assistant.llm_name, state)
        return line, gr.Timer(active=state is not None and not state.final)

    def begin(question: str) -> tuple[Any, ...]:
        return question, "", *_buttons(asking=bool(question.strip()))

    def choose(event: gr.SelectData) -> tuple[Any, ...]:
        return begin(event.value["text"])

    def answer(
        question: str, turns: Turns, *filters: str | None
    ) -> Iterator[tuple[list[dict[str, Any]], Turns]]:
        growing = respond(assistant, question, turns, **criteria(filters))
        try:
            for grown in growing:
                yield messages(grown), grown
        finally:
            growing.close()

    def add(files: list[str] | None) -> Iterator[str]:
        yield from add_files(assistant, files or [])

    def stop(turns: Turns) -> tuple[Any, ...]:
        return messages(stopped(turns)), stopped(turns), *_buttons(asking=False)

    with gr.Blocks(title="Abstract QA", fill_height=True, delete_cache=(3600, 3600)) as page:
        turns, asked = gr.State(()), gr.State("")
        with gr.Row(elem_id="aq-head"):
            # gr.HTML would need script evaluation, which the content policy forbids.
            collection = gr.Markdown(elem_id="aq-collection")
            writing = gr.Markdown(elem_id="aq-writer")
            upload = gr.UploadButton(
                "Add papers", file_count="multiple", scale=0, min_width=0, elem_id="aq-upload"
            )
        added = gr.Markdown(elem_id="aq-added")
        talk = gr.Chatbot(
            elem_id="aq-talk",
            label="Conversation",
            show_label=False,
            container=False,
            scale=1,
            height="100%",
            layout="panel",
            buttons=[],
            feedback_options=None,
            latex_delimiters=_MATHS,
            # Gradio's scrolling drags a reader back down while an answer grows.
            autoscroll=False,
            placeholder=welcome_html(),
            examples=[{"text": example} for example in EXAMPLES],
        )
        with gr.Accordion(_FILTERS, open=False, elem_id="aq-filters") as filtering, gr.Row():
            filters = [
                gr.Textbox(
                    label=box.label,
                    placeholder=f"e.g. {box.example}",
                    max_lines=1,
                    min_width=120,
                )
                for box in BOXES
            ]
        with gr.Row(elem_id="aq-ask"):
            question = gr.Textbox(
                label="Question",
                show_label=False,
                container=False,
                placeholder="Ask a question",
                max_lines=6,
                autofocus=True,
                scale=1,
            )
            send = gr.Button("Ask", variant="primary", scale=0, min_width=84)
            halt = gr.Button("Stop", variant="stop", scale=0, min_width=84, visible=False)
            clear = gr.Button("Clear", variant="secondary", scale=0, min_width=84)
        timer = gr.Timer(2, active=preparation is not None)

        quick: dict[str, Any] = {
            "queue": False,
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        entered = [box.submit for box in filters]
        starting = [asked, question, send, halt]
        started = [
            gr.on([question.submit, send.click, *entered], begin, question, starting, **quick),
            talk.example_select(choose, None, starting, **quick),
        ]
        answering = [
            start.then(
                answer,
                [asked, turns, *filters],
                [talk, turns],
                show_progress="hidden",
                concurrency_limit=ASKING_AT_ONCE,
                concurrency_id="answering",
                api_visibility="private",
            )
            for start in started
        ]
        for event in answering:
            # .then() is skipped after a failure, .failure() after a success.
            event.then(lambda: _buttons(asking=False), None, [send, halt], **quick)
            event.failure(lambda: _buttons(asking=False), None, [send, halt], **quick)
        # The stream ends first: its last snapshot would else be drawn over what follows.
        ended = [talk, turns, send, halt]
        halt.click(None, cancels=answering, **quick).then(stop, turns, ended, **quick)
        clear.click(None, cancels=answering, **quick).then(
            lambda: ([], (), *_buttons(asking=False)), None, ended, **quick
        )

        def header() -> str:
            return header_html(assistant.status())

        page.load(header, None, collection, **quick)
        upload.upload(
            add,
            upload,
            added,
            show_progress="hidden",
            concurrency_id="adding",
            api_visibility="private",
        ).then(header, None, collection, **quick)
        left = [box.blur for box in filters]
        # The last of two events counts: a box may be left while the row still changes.
        gr.on(
            [*left, *entered],
            _filters_row,
            filters,
            filtering,
            trigger_mode="always_last",
            **quick,
        )
        gr.on([page.load, timer.tick], writer, None, [writing, timer], **quick)
    return page  # type: ignore[no-any-return]


def _filters_row(*filters: str | None) -> gr.Accordion:
    """The folded row names the filters, so that none is forgotten out of sight."""
    only = in_words(criteria(filters))
    return gr.Accordion(label=f"{_FILTERS}: {only}" if only else _FILTERS)


def _buttons(asking: bool) -> tuple[gr.Button, gr.Button]:
    """Ask gives way to Stop while an answer is being written."""
    return gr.Button(visible=not asking), gr.Button(visible=asking)
