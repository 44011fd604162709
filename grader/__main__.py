"""The command line: `python -m grader COMMAND`.

Exit codes: 0 graded, whatever the score; 1 a check or an audit that did not pass; 2 unusable arguments
or input; 3 the grader's own error; 4 refused, since a layer around the submission is missing; 130
interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from typing import NoReturn

from grader import commands
from grader.commands.arguments import EXIT_GRADER, EXIT_INPUT, EXIT_INTERRUPTED, EXIT_OK, nobody_reads
from grader.intake import InputError, Unreadable
from grader.packages import modules_of
from grader.text import one_line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_INPUT, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show costs nobody a result
    try:
        code: int = options.command(options)
        return code
    except (InputError, Unreadable) as error:
        print(f"grader: {one_line(str(error), 4000)}", file=sys.stderr)
        return EXIT_INPUT
    except BrokenPipeError:
        nobody_reads()
        return EXIT_OK
    except KeyboardInterrupt:
        print("grader: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("grader: this is the grader's own error, not the submission's", file=sys.stderr)
        return EXIT_GRADER


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m grader", description="Grade HW3, Transformer from scratch.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for module in modules_of(commands):
        register = getattr(module, "register", None)
        if register is not None:
            register(subparsers)
    return parser


def _same_hashes_everywhere() -> None:
    """Start again with a fixed hash seed: the order of a set must not change anybody's score."""
    if sys.platform == "win32" or os.environ.get("PYTHONHASHSEED") == "0":
        return
    os.execve(  # noqa: S606 - our own interpreter, our own arguments
        sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"}
    )


if __name__ == "__main__":
    _same_hashes_everywhere()
    sys.exit(main())
