"""The command `rag`: reads arguments, asks the library, prints text or one JSON document.

Results go to stdout; notes, progress and errors to stderr. Exit status: 0 done, 1 an error
that is said in one line, 2 wrong usage, 130 interrupted. When a chat window serves the index,
the window is asked to do the work: it has the models in memory already.
"""

# Heavy modules are imported inside the commands that need them: LlamaIndex, Chroma and
# pydantic take seconds, and `rag --help` should not wait for them.

from __future__ import annotations

import contextlib
import ipaddress
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from rag.cli_eval import eval_
from rag.cli_options import chosen_index, index_option, json_option, llm_option
from rag.cli_output import print_data, progress_bar
from rag.errors import IndexBusyError, LLMError, RagError, SetupError, SourceError, UsageError

if TYPE_CHECKING:
    from rag.answers import Answer
    from rag.assistant import Assistant
    from rag.filters import Criteria
    from rag.remote import Window

T = TypeVar("T")
Turn = Mapping[str, str]

# Those of rag.exporting, which takes too long to import for `rag --help`.
_EXPORT_FORMATS = ("bibtex", "ris", "csl-json")
_INSTALL_ENDS = ("ready", "failed", "unavailable", "stopped")
_POLL_S = 0.2


class _Failure(click.ClickException):
    """An error shown as one line."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"rag: {' '.join(self.format_message().split())}", err=True, file=file)


class _Misuse(_Failure):
    exit_code = 2


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    """The boundary where errors become a line on stderr and an exit status."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "rag"
        raise _Misuse(f"{error.format_message()} (see {command} --help)") from error
    except UsageError as error:
        raise _Misuse(str(error)) from error
    except RagError as error:
        raise _Failure(str(error)) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:
        # click ends quietly on these itself.
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise _Failure(f"{where}{error.strerror or error}") from error


class _Program(click.Group):
    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _one_line_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line_errors():
            return super().invoke(ctx)


_FILTERS = (
    ("--year", "YEAR", "Only of this year or range: 2021, 2019-2021, 2019- or -2021."),
    ("--venue", "WORDS", "Only of a venue with these words in its name."),
    ("--author", "NAME", "Only by this author: a family name, or a whole name."),
    ("--keyword", "WORDS", "Only with these words in a keyword."),
    ("--source", "PATH", "Only from this file or folder, or from files of this name."),
)


def _filter_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, metavar, text in reversed(_FILTERS):
        command = click.option(name, metavar=metavar, help=text)(command)
    return command


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="abstract-qa", prog_name="rag")
@index_option
def main() -> None:
    """Ask a collection of research-paper abstracts; get answers with checkable citations."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character should show a mark, not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--rebuild", is_flag=True, help="Make the index anew, from these paths alone.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--keep-missing", is_flag=True, help="Keep abstracts that are gone from the files.")
@click.option("--titles", is_flag=True, help="Take entries without an abstract by their title.")
@click.option("--watch", is_flag=True, help="Go on until interrupted: ingest what changes there.")
@json_option
@index_option
def ingest(
    paths: tuple[str, ...],
    rebuild: bool,
    dry_run: bool,
    keep_missing: bool,
    titles: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Read files or folders of abstracts into the index, and keep it in step with them."""
    if dry_run and (rebuild or watch):
        raise UsageError("--dry-run changes nothing: leave --rebuild and --watch away")
    if watch and as_json:
        raise UsageError("--watch never ends, --json is one document: leave one of them away")
    if rebuild:
        _discard_index(paths)
    options = {"dry_run": dry_run, "keep_missing": keep_missing, "titles_suffice": titles}
    report = _ingest(paths, options)
    _print_report(report, as_json, dry_run)
    if watch:
        _watch(paths, options)
    if report["read"] == 0 and report["removed"] == 0:
        raise SourceError(f"no abstract could be read in {', '.join(paths)}; see what was skipped")


@main.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@json_option
@index_option
def remove(sources: tuple[str, ...], as_json: bool) -> None:
    """Remove what was read from files or folders. What stands elsewhere too stays."""
    from rag.terminal import removal_text

    report = _with_index(
        "rag remove",
        lambda assistant: assistant.remove(sources).as_dict(),
        lambda window: window.remove(sources),
        llm="extractive",
        writes=True,
    )
    print_data(report, as_json, removal_text)


@main.command()
@click.argument("query")
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="How many.")
@_filter_options
@json_option
@index_option
def search(query: str, k: int, as_json: bool, **given: str | None) -> None:
    """Find abstracts, best first. QUERY - reads the standard input."""
    from rag.answers import hit_dict
    from rag.terminal import hits_text

    query = _text_argument(query)
    filters = _criteria(given)
    hits = _with_index(
        "rag search",
        lambda assistant: [hit_dict(hit) for hit in assistant.search(query, k=k, **filters)],
        lambda window: window.search(query, k=k, **filters),
        llm="extractive",
    )
    print_data(hits, as_json, hits_text)


@main.command()
@click.argument("question")
@llm_option
@click.option("--history", metavar="FILE", help='Earlier turns: JSON [{"role", "content"}, ...].')
@_filter_options
@json_option
@index_option
def ask(
    question: str, llm: str | None, history: str | None, as_json: bool, **given: str | None
) -> None:
    """Answer a question from the abstracts. QUESTION - reads the standard input."""
    question = _text_argument(question)
    turns = _read_history(Path(history)) if history else []
    filters = _criteria(given)
    streaming = not as_json and sys.stdout.isatty()

    wanted = ""

    def here(assistant: Assistant) -> dict[str, Any]:
        nonlocal wanted
        wanted = assistant.llm_name
        if streaming:
            return _stream(assistant.stream(question, history=turns, **filters)).as_dict()
        return assistant.ask(question, history=turns, **filters).as_dict()

    def there(window: Window) -> dict[str, Any]:
        answer = window.ask(question, turns, llm, **filters)
        if streaming:
            _echo(answer["answer"])
        return answer

    answer = _with_index("rag ask", here, there, llm=llm)
    if streaming:
        _print_citations(answer)
    else:
        print_data(answer, as_json, _answer_text)
    if wanted and answer["llm"] != wanted:
        # The answer above is what there is without the LLM that was asked for.
        raise LLMError(answer["warnings"][0])


main.add_command(eval_)


@main.command()
@click.argument("format", type=click.Choice(_EXPORT_FORMATS), metavar="FORMAT")
@click.argument("ids", nargs=-1, metavar="IDS...")
@click.option("--all", "every", is_flag=True, help="Export every abstract of the index.")
@click.option("--output", metavar="FILE", help="Write there instead of to the standard output.")
@index_option
def export(format: str, ids: tuple[str, ...], every: bool, output: str | None) -> None:
    """Write abstracts as FORMAT: bibtex, ris or csl-json.

    IDS are those of `rag search --json`; - reads them from the standard input.
    """
    named = [id_ for given in ids for id_ in _text_argument(given).split()]
    if every == bool(named):
        raise UsageError("name the ids of abstracts, or give --all; not both")
    wanted = None if every else named
    text = _with_index(
        "rag export",
        lambda assistant: assistant.export(format, wanted),
        lambda window: window.export(format, wanted),
        llm="extractive",
    )
    if output:
        Path(output).write_bytes(text.encode())
    else:
        click.echo(text.encode(), nl=False)


@main.command()
@json_option
@index_option
def status(as_json: bool) -> None:
    """What the index holds, with which models, and whether it is healthy."""
    from rag.terminal import status_text

    facts = _with_index(
        "rag status", lambda assistant: assistant.status(), lambda window: window.status()
    )
    print_data(facts, as_json, status_text)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve at.")
@click.option(
    "--port", default=7860, show_default=True, envvar="PORT", type=click.IntRange(1, 65535)
)
@llm_option
@click.option("--prepare-local", is_flag=True, help="Install the local LLM behind the window.")
@click.option("--allow-remote", is_flag=True, help="Let other machines in: there is no password.")
@index_option
def chat(host: str, port: int, llm: str | None, prepare_local: bool, allow_remote: bool) -> None:
    """Serve the chat window until interrupted."""
    if not allow_remote and not _is_loopback(host):
        raise UsageError(
            f"--host {host} would let other machines use the window without a password: "
            "use 127.0.0.1, or add --allow-remote"
        )
    from rag.assistant import Assistant
    from rag.llms import ready_local
    from rag.lock import refuse_if_busy
    from rag.settings import Settings
    from ui.app import serve

    # An LLM that the user chose is not replaced by the local one.
    chosen = Settings.load(llm=llm).llm
    prepare_local = prepare_local and chosen in (None, "local") and not ready_local()
    writer = "extractive" if prepare_local else llm
    try:
        refuse_if_busy(Settings.load(index=chosen_index()).home, "window")
        assistant = Assistant.open(chosen_index(), writer, what="the chat window", create=False)
    except IndexBusyError as busy:
        if busy.url:
            raise IndexBusyError(
                f"a chat window for this index already runs at {busy.url}: open that, "
                "or choose another folder with --index"
            ) from busy
        raise
    with assistant:
        serve(assistant, host, port, prepare_local=prepare_local)


@main.command("install-local")
def install_local() -> None:
    """Install the local LLM, and say how far it is."""
    from rag.llms.install import LocalInstall

    def echo(line: str) -> None:
        # How it ended is said below, as a result or as an error.
        if install.status().stage not in _INSTALL_ENDS:
            click.echo(line, err=True)

    install = LocalInstall(echo=echo)
    install.start()
    try:
        while (state := install.status()).stage not in _INSTALL_ENDS:
            time.sleep(_POLL_S)
    finally:
        install.stop()
    if state.stage != "ready":
        raise SetupError(state.message)
    click.echo(state.message)


# --- the index, here or in a window --------------------------------------------------------


def _with_index(
    what: str,
    here: Callable[[Assistant], T],
    there: Callable[[Window], T],
    llm: str | None = None,
    create: bool = False,
    writes: bool = False,
) -> T:
    """Do the work with the index in this process or, when a window serves it, in the window."""
    from rag.lock import refuse_if_busy
    from rag.settings import Settings

    try:
        # Before the imports that only an open index needs: a window answers at once, and who
        # cannot write need not wait to hear it.
        home = Settings.load(index=chosen_index()).home
        refuse_if_busy(home, "window")
        if writes:
            refuse_if_busy(home)
        from rag.assistant import Assistant

        assistant = Assistant.open(index=chosen_index(), llm=llm, what=what, create=create)
    except IndexBusyError as busy:
        if not busy.url:
            raise
        from rag.remote import Window

        with Window(busy.url, busy.token) as window:
            click.echo(f"asked the chat window at {window.url}, which owns the index", err=True)
            return there(window)
    with assistant:
        return here(assistant)


def _ingest(paths: Sequence[str], options: dict[str, bool]) -> dict[str, Any]:
    files = [Path(path) for path in paths]
    if options["dry_run"] and (report := _previewed(files, options["titles_suffice"])):
        return report

    def here(assistant: Assistant) -> dict[str, Any]:
        with progress_bar() as progress:
            return assistant.ingest(files, progress=progress, **options).as_dict()

    return _with_index(
        "rag ingest",
        here,
        lambda window: window.ingest(paths, **options),
        create=True,
        writes=not options["dry_run"],
    )


def _previewed(files: Sequence[Path], titles_suffice: bool) -> dict[str, Any] | None:
    """What an ingest would do where there is no index yet, which must not make one."""
    from rag.assistant import preview

    with progress_bar() as progress:
        report = preview(files, chosen_index(), progress=progress, titles_suffice=titles_suffice)
    return report.as_dict() if report else None


def _watch(paths: Sequence[str], options: dict[str, bool]) -> None:
    """Ingest again and again; others may write in between."""
    from rag.settings import Settings
    from rag.watching import changes

    files = [Path(path) for path in paths]
    click.echo(f"watching {', '.join(paths)} (Ctrl-C ends it)", err=True)
    for changed in changes(files, Settings.load(index=chosen_index()).home):
        try:
            _print_report(_ingest(paths, options), as_json=False, dry_run=False)
        except (IndexBusyError, SourceError) as error:
            names = ", ".join(path.name for path in changed[:3])
            click.echo(f"rag: {names}: not ingested, {error}", err=True)


def _discard_index(paths: Sequence[str]) -> None:
    """Delete the index, unless there is no abstract to make it anew from."""
    from rag.assistant import rebuilt
    from rag.index import preview

    if not preview([Path(path) for path in paths]).read:
        raise SourceError(f"no abstract in {', '.join(paths)} to rebuild from; the index is kept")
    rebuilt(chosen_index())


# --- arguments -------------------------------------------------------------------------------


def _text_argument(text: str) -> str:
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UsageError("the standard input is not UTF-8 text") from None


def _read_history(path: Path) -> list[Turn]:
    try:
        turns = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"--history {path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"--history {path}: not JSON in UTF-8 ({error})") from None
    if not isinstance(turns, list):
        raise UsageError(f'--history {path}: not a list of {{"role", "content"}}')
    return [_turn(path, number, turn) for number, turn in enumerate(turns, start=1)]


def _turn(path: Path, number: int, turn: Any) -> Turn:
    if not isinstance(turn, dict):
        raise UsageError(f'--history {path}, turn {number}: not {{"role", "content"}}')
    if turn.get("role") not in ("user", "assistant"):
        raise UsageError(f"--history {path}, turn {number}: role is not user or assistant")
    if not isinstance(turn.get("content"), str):
        raise UsageError(f"--history {path}, turn {number}: content is not text")
    return {"role": turn["role"], "content": turn["content"]}


def _criteria(given: Mapping[str, str | None]) -> Criteria:
    """The filters given, checked before an index is opened. A path is taken from here."""
    from rag.filters import Filters

    found = {name: value for name, value in given.items() if value is not None}
    if "source" in found and Path(found["source"]).exists():
        found["source"] = str(Path(found["source"]).resolve())
    criteria = cast("Criteria", found)
    Filters.of(**criteria)
    return criteria


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- printing --------------------------------------------------------------------------------


def _print_report(report: dict[str, Any], as_json: bool, dry_run: bool) -> None:
    from rag.terminal import report_text

    if dry_run and not as_json:
        click.echo("nothing was changed; an ingest would come to this:")
    print_data(report, as_json, report_text)


def _echo(text: str, end: str = "\n") -> None:
    from rag.terminal import printable

    click.echo(printable(text) + end, nl=False)


def _answer_text(answer: Mapping[str, Any]) -> str:
    from rag.terminal import citations_text, printable

    return f"{printable(answer['answer'])}\n\n{citations_text(answer)}"


def _print_citations(answer: Mapping[str, Any]) -> None:
    from rag.terminal import citations_text

    click.echo("\n" + citations_text(answer))


def _stream(snapshots: Iterator[Answer]) -> Answer:
    """Write an answer to the terminal as it grows; the finished one."""
    from rich.console import Console

    shown = ""
    with Console(stderr=True).status("searching …") as waiting:
        for answer in snapshots:
            if answer.text == shown:
                waiting.update(_doing(answer))
                continue
            # What is shown is checked and stays, so only what follows it is added.
            waiting.stop()
            _echo(answer.text[len(shown) :], end="")
            shown = answer.text
    _echo("")
    return answer


def _doing(answer: Answer) -> str:
    if answer.stage == "understanding":
        return f"{answer.llm} is putting the question so that it can be searched …"
    if answer.stage == "writing":
        return f"{answer.llm} is writing: {answer.pending[-60:]}"
    papers = len({item.record.id for item in answer.evidence})
    return f"{answer.llm} is reading {len(answer.evidence)} sentences of {papers} abstracts …"
