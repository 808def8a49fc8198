"""A Python function as a program that runs where Airflow is not.

The function's own source and its arguments as JSON become one script, which needs nothing but an interpreter. Nothing is
pickled: the node's Python may be another one, and who reads the job sees what ran. So the function has to stand by itself;
what it would miss there is said when the DAG is parsed. This module knows nothing of Airflow.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import symtable
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

#: Bytes of arguments: a job's script holds 4 MiB, and the scheduler keeps each.
ARGUMENTS_MOST = 1024 * 1024
#: Names that any module has.
_ANYWHERE = frozenset(dir(builtins)) | {"__name__", "__file__", "__annotations__"}

# The names of this part are its own: the function sees one more global, and no module that it has not imported itself.
_PROGRAM = """\
#!/usr/bin/env {python}
from __future__ import annotations

{source}

def _dagbridge_call(function, arguments):
    import json, os, sys

    sys.stdout.reconfigure(line_buffering=True)  # the log can be followed
    arguments = json.loads(arguments)
    value = function(*arguments["args"], **arguments["kwargs"])
    if value is None:
        return
    try:
        text = json.dumps({{"return_value": value}}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SystemExit(f"what {{function.__name__}} returned cannot be written as JSON: {{error}}")
    with open(os.environ["DAGBRIDGE_OUTPUT"], "w") as file:
        file.write(text)


if __name__ == "__main__":
    _dagbridge_call({name}, {arguments!r})
"""


def source_of(function: Callable[..., Any], decorator: str) -> str:
    """The source of a function, moved to the left margin, without the decorators down to the one named ``decorator``.

    ``TypeError`` with a sentence for what is no plain function, and for a function that uses names from around it.
    """
    name = getattr(function, "__name__", repr(function))
    where = f"function {name}"
    try:
        lines = [line.rstrip("\n") for line in inspect.getsourcelines(inspect.unwrap(function))[0]]
    except (OSError, TypeError) as error:
        raise TypeError(f"{where} has no source that could be sent: it must be written with def, in a file ({error})") from None
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    try:
        # Moving lines first would change strings that span several.
        tree = ast.parse("\n".join(["if True:" if indent else "", *lines]))
    except SyntaxError:
        raise TypeError(f"{where} must be written with def, not with lambda") from None
    defined = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if defined is None or inspect.isgeneratorfunction(function):
        raise TypeError(
            f"{where} must be written with def, without async and yield: it is called once, and its value is the result"
        )
    source = _from_margin(lines, indent, defined, _first_line(defined, decorator))
    if missing := sorted(_names_from_outside(source, name)):
        raise TypeError(
            f"{where} uses {', '.join(missing)} from outside of it: only its own source goes to the node. "
            "Import inside the function, and pass values as arguments."
        )
    return source


def program(name: str, source: str, python: str, args: Collection[Any], kwargs: Mapping[str, Any]) -> str:
    """The script that calls a function and leaves what it returns, unless that is None, as the output ``return_value``.

    ``python`` is the interpreter there: a name in PATH, or a path. ``TypeError`` and ``ValueError`` with a sentence for arguments
    that are no JSON or too long.
    """
    if faults := list(json_faults({**dict(enumerate(args, 1)), **kwargs})):
        raise TypeError(f"arguments of function {name} go to the node as JSON: " + "; ".join(faults))
    arguments = json.dumps({"args": list(args), "kwargs": dict(kwargs)}, default=_plain)
    if len(arguments) > ARGUMENTS_MOST:
        raise ValueError(
            f"the arguments of function {name} are {len(arguments):,} bytes as JSON, more than {ARGUMENTS_MOST:,}: "
            "leave them in a file that the node can read, and pass its path"
        )
    return _PROGRAM.format(python=python, source=source, name=name, arguments=arguments)


def json_faults(values: Mapping[Any, Any], known: Callable[[Any], bool] = lambda value: False) -> Iterator[str]:
    """What of these is no JSON, a sentence each; ``known`` are values that will be something else by then."""
    for name, value in values.items():
        yield from (f"{name}{path} {what}" for path, what in _faults(value, known))


def _faults(value: Any, known: Callable[[Any], bool]) -> Iterator[tuple[str, str]]:
    if value is None or isinstance(value, str | bool | int) or known(value):
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            yield "", f"is {value}"
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for i, each in enumerate(value):
            yield from ((f"[{i}]{path}", what) for path, what in _faults(each, known))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(key, str):
                yield from ((f"[{key!r}]{path}", what) for path, what in _faults(each, known))
            else:
                yield "", f"has the key {key!r}, which is no text"
    else:
        yield "", f"is a {type(value).__name__}"


def _plain(value: Any) -> Any:
    """A list or a dict of what is one in all but its class: the results of a mapped task are read one by one."""
    return dict(value) if isinstance(value, Mapping) else list(value)


def _first_line(defined: ast.FunctionDef, decorator: str) -> int:
    """Of the function, or of the first decorator that is its own: Airflow's are those down to the one that made it a task."""
    for i, node in reversed(list(enumerate(defined.decorator_list))):
        called = node.func if isinstance(node, ast.Call) else node
        if getattr(called, "attr", getattr(called, "id", None)) == decorator:
            return min([own.lineno for own in defined.decorator_list[i + 1 :]] + [defined.lineno])
    return min([own.lineno for own in defined.decorator_list] + [defined.lineno])


def _from_margin(lines: list[str], indent: str, defined: ast.FunctionDef, first: int) -> str:
    """The function's lines without their indent, strings that span several left as they are. Numbers are those of the tree."""
    inside = {
        line
        for node in ast.walk(defined)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    last = defined.end_lineno or defined.lineno
    kept = ((number, lines[number - 2]) for number in range(first, last + 1))
    return "".join((line if number in inside else line.removeprefix(indent)) + "\n" for number, line in kept)


class _WithoutAnnotations(ast.NodeTransformer):
    """They are never evaluated there."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.copy_location(ast.Constant(None), node.annotation)
        return self.generic_visit(node)


def _names_from_outside(source: str, name: str) -> set[str]:
    """Names that a source uses and does not define: globals and closures of the place it was taken from."""
    bare = ast.unparse(ast.fix_missing_locations(_WithoutAnnotations().visit(ast.parse(source))))
    module = symtable.symtable(bare, name, "exec")
    tables, used, defined = [module], set[str](), {name}
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            at_module = table is module or symbol.is_global()
            if at_module and symbol.is_referenced():
                used.add(symbol.get_name())
            if at_module and (symbol.is_assigned() or symbol.is_imported()):  # "global x" inside the function
                defined.add(symbol.get_name())
    return used - defined - _ANYWHERE
