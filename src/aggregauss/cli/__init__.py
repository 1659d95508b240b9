"""The command line, `aggregauss`; needs the extra `cli`."""

import sys


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        from aggregauss.cli.app import app
    except ImportError as missing:
        sys.exit(f'aggregauss: the command line needs {missing.name}. Run: python -m pip install "aggregauss[all]"')
    app()
