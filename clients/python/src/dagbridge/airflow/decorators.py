"""``@task.dagbridge``: a Python function as a native job.

The function's source and its arguments go to the node as one script (``dagbridge.airflow.function``); what it returns is the
task's XCom. Airflow is not needed there, and neither is this package.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowFailException, DecoratedOperator, task_decorator_factory

from dagbridge.airflow import function, spec
from dagbridge.airflow.operators import DagBridgeOperator

try:
    from airflow.sdk.definitions.context import KNOWN_CONTEXT_KEYS
except ImportError:  # Airflow 2
    from airflow.utils.context import KNOWN_CONTEXT_KEYS  # type: ignore[attr-defined, no-redef]

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, TaskDecorator

    from dagbridge import Task

#: What the function takes the place of.
_PROGRAM = ("command", "script", "script_file")
#: What of Airflow's context is text, and so goes to a function that has a parameter of that name.
_TEXTS = frozenset({"ds", "ds_nodash", "run_id", "task_instance_key_str", "ts", "ts_nodash", "ts_nodash_with_tz"})


class DagBridgeDecoratedOperator(DecoratedOperator, DagBridgeOperator):
    """What ``@task.dagbridge`` makes of a function. Takes what ``DagBridgeOperator`` takes, but for the program.

    :param python: the interpreter on the node: a name in PATH, or a path (``"/opt/venv/bin/python"``).
    :param source: the function's source; it is serialized with the DAG and never templated. The arguments are.
    :param skip_on_exit_code: 99 unless given: a function skips its task by ``raise SystemExit(99)``.
    """

    custom_operator_name = "@task.dagbridge"
    template_fields: Sequence[str] = (
        "op_args",
        "op_kwargs",
        "python",
        "source",
        *(field for field in spec.FIELDS if field not in _PROGRAM),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **DagBridgeOperator.template_fields_renderers,
        "source": "py",
    }

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        source: str,
        python: str = "python3",
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        skip_on_exit_code: int | Sequence[int] | None = 99,
        **kwargs: Any,
    ) -> None:
        if given := [name for name in _PROGRAM if name in kwargs]:
            raise TypeError(f"@task.dagbridge: {' and '.join(given)}: the function says what to run")
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            skip_on_exit_code=skip_on_exit_code,
            **kwargs,
        )
        self.python = python
        self.source = source
        if objects := sorted(self._left_to_airflow() - _TEXTS):
            raise TypeError(
                f"function {self._name} has the parameter {', '.join(objects)}, which Airflow would fill from its context; the "
                'node has none. Pass what is needed of it as an argument, such as "{{ ti.try_number }}"'
            )
        arguments: dict[Any, Any] = {**dict(enumerate(op_args or (), 1)), **(op_kwargs or {})}
        if faults := list(function.json_faults(arguments, known=lambda value: hasattr(value, "resolve"))):
            raise TypeError(
                f"arguments of function {self._name} go to the node as JSON, or as another task's result: {'; '.join(faults)}"
            )

    @property
    def _name(self) -> str:
        return str(self.python_callable.__name__)

    def _left_to_airflow(self) -> set[str]:
        """Parameters that Airflow fills from the context, since nobody else does."""
        signature = inspect.signature(self.python_callable)
        given = signature.bind_partial(*self.op_args, **self.op_kwargs).arguments
        return (signature.parameters.keys() & KNOWN_CONTEXT_KEYS) - given.keys()

    def _do_render_template_fields(self, parent: Any, template_fields: Any, *rest: Any, **more: Any) -> None:
        """A program's braces are its own."""
        super()._do_render_template_fields(parent, [name for name in template_fields if name != "source"], *rest, **more)

    def task_spec(self, context: Context) -> Task:
        """The function as a script."""
        told: Any = context
        texts = {name: told[name] for name in self._left_to_airflow() if name in told}
        try:
            self.script = function.program(self._name, self.source, self.python, self.op_args, {**texts, **self.op_kwargs})
        except (TypeError, ValueError) as error:
            raise AirflowFailException(f"Task {self.task_id}: {error}") from None
        return super().task_spec(context)


def dagbridge_task(
    python_callable: Callable[..., Any] | None = None, multiple_outputs: bool | None = None, **kwargs: Any
) -> TaskDecorator:
    """``@task.dagbridge``, ``@task.dagbridge(cpu=4, python=...)``: runs a function as a native job.

    The function stands by itself: it imports what it needs, and uses nothing from around it. Otherwise there is a ``TypeError``
    with a sentence when the DAG is parsed.

    :param python_callable: the function.
    :param multiple_outputs: push each key of a returned dict as an XCom of its own.
    :param kwargs: of ``DagBridgeDecoratedOperator``.
    """

    def decorate(function_: Callable[..., Any]) -> TaskDecorator:
        return task_decorator_factory(
            python_callable=function_,
            multiple_outputs=multiple_outputs,
            decorated_operator_class=DagBridgeDecoratedOperator,
            source=function.source_of(function_, "dagbridge"),
            **kwargs,
        )

    return decorate if python_callable is None else decorate(python_callable)  # type: ignore[return-value]
