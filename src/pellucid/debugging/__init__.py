"""The debugging view: `prepare_debug(DIR)` writes down as source what compilers make of functions while it is active.

| file | what |
| --- | --- |
| session.py | `prepare_debug`: what is watched, from when to when |
| stock.py, stock_guards.py | what PyTorch's own compiler makes, and its guards as Python |
| own.py | what Pellucid makes |
| records.py | both as the same data |
| references.py | objects written down as expressions |
| graph_text.py, program_text.py | graphs and functions as files that run |
| folder.py | the folder: names of files, the manifest, the index |
| runtime.py | what the written files call when they run |
"""
