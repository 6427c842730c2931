"""Python versions of C functions of the standard library.

Capture inlines a polyfill where a program calls the C original, so each must behave exactly like it: the same values, the same
order of calls back into the program, the same exceptions. They use builtins only, and nothing of torch.
"""
