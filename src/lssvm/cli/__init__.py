"""The command line: ``lssvm train data.csv --target income -o model.lssvm --report report.html``.

Nothing but the standard library is imported until a command runs; see ``lssvm --help``.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        What stands behind ``lssvm``; None: what the process was started with.

    Returns
    -------
    int
        The exit code: 0, 1 where the model was written but its report failed (or standard output
        was closed), 2 for input that cannot be used (one line on standard error gives the reason),
        130 when it was interrupted.

    Examples
    --------
    >>> from lssvm.cli import main
    >>> main(["--version"])
    lssvm 1...
    0
    """
    import sys

    try:
        import rich  # noqa: F401
        import typer  # noqa: F401

        from lssvm.cli.app import app

        app(arguments, prog_name="lssvm")
    except ImportError as error:
        if error.name not in ("rich", "typer"):
            raise
        from lssvm._core.errors import install

        missing = f"the command line needs {error.name}, which is not installed"
        sys.stderr.write(f"lssvm: error: {missing}: {install('[cli,files]')}\n")
        return 2
    except KeyboardInterrupt:  # while it starts
        return 130
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
