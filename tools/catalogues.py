"""What the catalogues must hold; `python -m tools.catalogues` brings them up to date.

What is translated stays, what is new gets an empty translation, what is gone is removed.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import get_args

import click
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from compatcheck import bug_report, errors, probes
from compatcheck.cli import cli
from compatcheck.language import po_files
from compatcheck.matrix.compile import read_entries, read_toml
from compatcheck.matrix.entry import Confidence, Entry, Impact
from compatcheck.project.sources import formats
from compatcheck.results.cluster import Fault
from compatcheck.results.findings import STATUSES, Outcome

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "compatcheck"
INTERFACE = sorted(PACKAGE.glob("language/*/LC_MESSAGES/compatcheck.po"))
ENTRIES = sorted((ROOT / "matrix" / "translations").glob("*.po"))
_TEXTS = {
    **dict.fromkeys(("_", "gettext", "marked"), (0,)),
    **dict.fromkeys(("Signature", "Failure", "_signature"), (1,)),
    "ngettext": (0, 1),
}
"""Which arguments of a function are texts to translate. Babel's own extraction overlooks what stands in f-strings."""
_TERMS = (
    *("a recorded environment", "problem", "note", "not reproduced", "not tried", "bad", "good", "median", "longest"),
    *("added", "removed", "edited", "changed", "ignore", "baseline", "loss"),
)
_ERRORS = {name for name, value in vars(errors).items() if inspect.isclass(value)}

_OF_DEVELOPERS = (
    *("bug_report/", "symptoms/", "explanation/", "matrix/entry", "matrix/compile", "advice/_marks", "interfaces/"),
    *("environment/vocabulary", "import_check/_entry_points", "import_check/_child", "__init__"),
    *("packages/interface_errors", "pipelines/compare/_draft", "tools/matrix/draft", "tools/matrix/schema"),
    *("report/pages/site/", "report/formats/entries/", "results/logs"),
)
"""Modules whose sentences nobody reads in a report: patterns to look for, and what the authors of entries are told."""
_LEAST_WORDS = 2
_WORD = re.compile(r"[A-Za-z]{2,}|\ba\b")
_PLACE = re.compile(r"\{\w*\}")
_PERCENT = re.compile(r"%%|%(?:\.\d+)?[sdgfr]")
_PATTERN = re.compile(r"[\\^$|]|\(\?|\n")
_SEARCHES = ("replace", "removesuffix", "removeprefix", "partition", "split", "startswith", "endswith")
_CODE = ("compatcheck ", "from ", "import ", "#", "--", "[", "Traceback", "CUDA used", "ROCM used")
_FUNCTION_WORDS = frozenset(
    ("the", "is", "are", "not", "no", "and", "with", "of", "for", "to", "in", "a", "an", "but", "which", "has", "have")
    + ("does", "from", "cannot", "on", "or", "by", "that", "only", "than", "was", "it", "its", "be", "as", "at")
    + ("into", "without", "where")
)

_HEADER = r"""msgid ""
msgstr ""
"Language: {catalogue.locale}\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: {catalogue.plural_forms}\n"

"""

Text = str | tuple[str, ...]


def interface() -> dict[Text, list[str]]:
    """Every text the program says in another language, a plural with its singular, with the places it comes from."""
    helped = _of_help(cli, "compatcheck")
    return _gathered(
        (*_marked(), *_of_errors(), *helped, *_of_formats(), *_of_tables(), *_terms(), *_of_probes(), *_sentences())
    )


def asked_for() -> dict[Text, list[str]]:
    """Those of them that the code asks for by name; the others stand where errors are raised and help is written."""
    return _gathered((*_marked(), *_of_tables(), *_terms()))


def _gathered(places: Iterable[tuple[str, Text]]) -> dict[Text, list[str]]:
    found: dict[Text, list[str]] = {}
    for place, text in places:
        found.setdefault(text, []).append(place)
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def _marked() -> Iterator[tuple[str, Text]]:
    """What is handed over as a literal to a function of `_TEXTS`, within other strings as well."""
    for file, call in _calls():
        texts = [call.args[at] for at in _TEXTS.get(_name(call), ()) if at < len(call.args)]
        told = tuple(part.value for part in texts if isinstance(part, ast.Constant) and isinstance(part.value, str))
        if told and len(told) == len(texts):
            yield file, told if len(told) > 1 else told[0]


def _of_errors() -> Iterator[tuple[str, Text]]:
    """The parts of errors that are the same wherever one is raised, as literals or by variables that hold them."""
    for file, tree in _modules():
        for scope in ast.walk(tree):
            if isinstance(scope, ast.FunctionDef):
                yield from ((file, text) for text in _texts_of_errors(scope, tree))


def _texts_of_errors(scope: ast.FunctionDef, module: ast.Module) -> Iterator[str]:
    values: dict[str, list[ast.expr]] = {}
    for node in (*module.body, *ast.walk(scope)):
        for target, value in _assignments(node):
            values.setdefault(target, []).append(value)
    for node in ast.walk(scope):
        for part in node.args if isinstance(node, ast.Call) and _name(node) in _ERRORS else ():
            for value in values.get(part.id, []) if isinstance(part, ast.Name) else [part]:
                yield from _literals(value)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from ((e.id, value) for e, value in zip(target.elts, node.value.elts) if isinstance(e, ast.Name))


def _literals(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.IfExp):
        yield from _literals(value.body)
        yield from _literals(value.orelse)
    elif isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        yield value.value


def _sentences() -> Iterator[tuple[str, Text]]:
    """What else reads as a sentence: reasons, and what a probe or a reader says, shown far from where it is written.

    A text that is put together stands as a template, its parts numbered.
    """
    for file, tree in _modules():
        if not file.startswith(_OF_DEVELOPERS):
            yield from ((file, text) for text in _sentences_of(tree))


def _sentences_of(tree: ast.Module) -> Iterator[str]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        parent = parents.get(node)
        if isinstance(node, ast.JoinedStr):
            text = _template(node)
        elif isinstance(node, ast.Constant) and not isinstance(parent, (ast.JoinedStr, ast.Expr)):
            text = _numbered(node.value) if isinstance(node.value, str) else ""
        else:
            continue
        if _is_sentence(text) and not _is_handed_over(node, parent) and not _is_searched(parent):
            yield text


def _is_handed_over(node: ast.AST, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Call) and node in parent.args and _name(parent) in _TEXTS


def _is_searched(parent: ast.AST | None) -> bool:
    """Whether a literal is looked for in another text, and shown to nobody."""
    if isinstance(parent, ast.Compare):
        return True
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in _SEARCHES


def _template(joined: ast.JoinedStr) -> str:
    places = count()
    return "".join(
        part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else f"{{{next(places)}}}"
        for part in joined.values
    )


def _numbered(text: str) -> str:
    places = count()
    return _PERCENT.sub(lambda found: "%" if found[0] == "%%" else f"{{{next(places)}}}", text)


def _is_sentence(text: str) -> bool:
    words = _WORD.findall(_PLACE.sub("", text))
    return (
        len(words) >= _LEAST_WORDS
        and " " in text.strip()
        and not _FUNCTION_WORDS.isdisjoint(words)
        and not text.startswith(_CODE)
        and not _PATTERN.search(text)
    )


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for file, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield file, node


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the package and of the verbs that only a checkout has, by their paths."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "tools" / "matrix").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _terms() -> Iterator[tuple[str, Text]]:
    """The words of the matrix's own vocabulary, which stand in tables and never in a sentence."""
    literals = (get_args(kind) for kind in (Impact, Confidence, Outcome, Fault))
    for name in (*STATUSES, *chain.from_iterable(literals), *_TERMS):
        yield "a term", name


def _of_tables() -> Iterator[tuple[str, Text]]:
    """What a symptom or a failure is called, and what to do next about it."""
    symptoms = read_toml(ROOT / "matrix" / "tables" / "symptoms.toml")
    failures = read_toml(ROOT / "matrix" / "tables" / "failures.toml")
    for row in (*symptoms["symptoms"].values(), *failures["failures"]):
        if " " in row["title"]:
            yield "a table", row["title"]
    for row in symptoms["advice"]:
        yield "a table", row["text"]
    for name, table in (("unprobed", "reasons"), ("traits", "traits")):
        for text in read_toml(ROOT / "matrix" / "tables" / f"{name}.toml")[table].values():
            yield "a table", text


def _of_formats() -> Iterator[tuple[str, Text]]:
    """What `compatcheck formats` lists."""
    for title in chain(*formats(), bug_report.titles()):
        yield "a format", title


def _of_help(command: click.Command, name: str) -> Iterator[tuple[str, Text]]:
    if command.help:
        yield name, inspect.cleandoc(command.help)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            yield name, parameter.help
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from _of_help(found, f"{name} {each}")


def _of_probes() -> Iterator[tuple[str, Text]]:
    """What a probe measures, in a line."""
    for name in probes.names():
        yield f"probe {name}", probes.describe(name)[0]


def entries() -> dict[Text, list[str]]:
    """What people read of the entries of the matrix, by the ids of those that say it."""
    found: dict[Text, list[str]] = {}
    for entry in matrix_entries():
        whys = [remedy.why for remedy in entry.remedies]
        actions = [remedy.action for remedy in entry.remedies if remedy.action]
        for text in (entry.title, entry.summary, *actions, *whys, entry.mechanism, *entry.misleading):
            found.setdefault(text, []).append(entry.id)
    for note in read_toml(ROOT / "matrix" / "tables" / "link-notes.toml")["notes"]:
        for text in (note["note"], *(way["why"] for way in note.get("remedies", ()))):
            found.setdefault(text, []).append(note["entry"])
    for name, moved in read_toml(ROOT / "matrix" / "tables" / "moved-names.toml")["names"].items():
        if "note" in moved:
            found.setdefault(moved["note"], []).append(name)
    return found


def matrix_entries() -> Iterable[Entry]:
    return read_entries(ROOT / "matrix").values()


def update(
    path: Path, texts: Mapping[Text, Iterable[str]], translated: Mapping[Text, str | tuple[str, ...]] | None = None
) -> None:
    """Write a catalogue that holds exactly the texts, with the translations it has and those that are given."""
    known = po_files.read(path)
    catalogue = Catalog(locale=known.locale)
    for text, places in texts.items():
        held = known.get(text if isinstance(text, str) else text[0])
        string = (translated or {}).get(text)
        comments = [", ".join(dict.fromkeys(places))]
        catalogue.add(text, string or (held.string if held and not held.fuzzy else None), auto_comments=comments)
    with path.open("wb") as stream:
        stream.write(_HEADER.format(catalogue=catalogue).encode())
        write_po(stream, catalogue, width=120, omit_header=True, ignore_obsolete=True)


if __name__ == "__main__":
    for path in INTERFACE:
        update(path, interface())
    for path in ENTRIES:
        update(path, entries())
