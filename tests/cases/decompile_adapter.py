"""Decompilers as the programs of ../shared/cases/decompile call them: a code object in, source out.

Imported by their runner (`run.py decompile_adapter:decompile`), in every Python that `_bytecode` is built for.
"""

from pellucid import decompiling


def decompile(code):
    """What a check accepts."""
    return decompiling.decompile(code, check=True).source


def blocks(code):
    """The block form, which must do for everything."""
    return decompiling.block_form(code).source
