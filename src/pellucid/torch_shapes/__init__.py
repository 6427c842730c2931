"""The shape engine at PyTorch's border: `pellucid.ShapeEnv` behind torch.SymInt, and as the ShapeEnv of PyTorch's own Python code.

`env` holds the ShapeEnv that FakeTensorMode and make_fx accept, `numbers` and `to_sympy` translate numbers and expressions, `calling`
calls functions on symbolic fakes. Imports sympy only when an expression is asked for as sympy's.
"""
