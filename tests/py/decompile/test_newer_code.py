"""Programs of 3.11 to 3.13 with what only newer compilers make: groups of exceptions, loops inlined, code copied and shortened. They come
back as they were written, or compile to the same."""

import textwrap

import pellucid._bytecode as bytecode
import pytest

from pellucid import _grading, _interpreters, _recompile

PROGRAMS = {
    "except* clauses": (
        311,
        """
        def f(a):
            try:
                a()
            except* ValueError:
                a(1)
            except* (TypeError, OSError) as e:
                a(e)
                raise
            else:
                a(2)
            return a
        """,
    ),
    "finally blocks that end in several ways": (
        311,
        """
        def f(a):
            try:
                return a()
            finally:
                if a:
                    a(1)
                else:
                    a(2)


        def g(a, b):
            try:
                return a(b)
            finally:
                if a is b:
                    try:
                        del a.b
                    except AttributeError:
                        pass
                else:
                    a.b = b


        def h(a):
            try:
                a()
            except BaseException as e:
                a(e)
            finally:
                a(1)
                for _ in a.b:
                    if a.c:
                        break


        def k(a):
            try:
                return a()
            finally:
                try:
                    a(1)
                except OSError:
                    a(2)
        """,
    ),
    "type aliases of what is around them": (
        312,
        """
        def f[A, *Ts, **P]():
            type B[C] = dict[A, C]
            return B
        """,
    ),
    "an asynchronous generator that ends with a short name": (
        311,
        """
        def f():
            async def g():
                nonlocal DONE
                try:
                    yield
                except:
                    pass
                DONE = 1
            DONE = 0
            return g
        """,
    ),
    "variables stored twice at once": (
        311,
        """
        def f(a):
            _, _, b = a
            *c, c = b
            for _, _ in b:
                a(c)
            return [b for _, _, b in a], max(k for k, _, _ in b)
        """,
    ),
    "conditions that lead back from an or": (
        311,
        """
        def f(a, b):
            for x in a:
                if x is b or x == b:
                    return True
            return False
        """,
    ),
    "a variable that may be unbound behind a statement": (
        311,
        """
        def f(a):
            with a() as b:
                c = b()
            return c


        def g(a):
            try:
                b = a()
            except ValueError:
                pass
            return b
        """,
    ),
    "a body that always raises": (
        311,
        """
        def f(a):
            try:
                raise a
            except:
                b = 5
            b = 6
        """,
    ),
    "a try statement that ends a with statement": (
        311,
        """
        def f(a, b):
            with a() as c:
                try:
                    if b < 0:
                        d = c()
                    else:
                        d = c(b + 1)
                except OSError:
                    raise ValueError
            if b >= 0 and d > b:
                raise ValueError(d)
            return d
        """,
    ),
    "a short end behind a with statement": (
        311,
        """
        def f(self, a):
            with self.lock(a):
                if self.error is not None:
                    raise self.error
            self.error = None
        """,
    ),
    "break out of a with statement that nothing else leaves": (
        311,
        """
        def g(self):
            counter = 0
            while True:
                counter += 1
                with self.lock():
                    counter += 10
                    break
                counter += 100
            self.check(counter, 11)
        """,
    ),
    "finally behind else clauses, its end copied": (
        311,
        """
        def h(fut, sock, address):
            try:
                sock.connect(address)
            except BlockingIOError:
                sock.wait()
            except BaseException as exc:
                fut.fail(exc)
            else:
                fut.done(None)
            finally:
                fut = None


        def i(self):
            try:
                self.parse(b'', True)
            except KeyError as v:
                self.fail(v)
            try:
                handler = self.target.close
            except AttributeError:
                pass
            else:
                return handler()
            finally:
                del self.target
        """,
    ),
    "a loop is no loop because handlers lead back to what has no effect": (
        311,
        """
        def j(n):
            for i in range(n):
                try:
                    1 / i
                except NameError:
                    pass
                except ZeroDivisionError:
                    pass
                n = n + i
                try:
                    n = 1 / i
                except NameError:
                    pass
                pass
                n = n + i
        """,
    ),
    "return out of a handler in a with statement": (
        312,
        """
        def f(compiler, source):
            with warnings.catch():
                warnings.filter('ignore')
                try:
                    compiler(source)
                except SyntaxError:
                    try:
                        compiler(source + 'x')
                        return
                    except KeyError as e:
                        return
                    except TypeError as e:
                        pass
            return compiler(source, 1)
        """,
    ),
    "a value to be returned that a finally block drops": (
        311,
        """
        def f(a, b, c):
            try:
                yield a
                return b
            finally:
                raise c
        """,
    ),
    "starred annotations": (
        311,
        """
        def g(Ts):
            def inner(*args: *Ts):
                return args
            def other(*args: *tuple[int, *Ts], key: int = 3) -> str:
                return args, key
            return inner, other
        """,
    ),
    "sets of equal constants": (
        311,
        """
        def h():
            return {1, 1, 1}, {1, 2, 2}
        """,
    ),
    "variables that only unreached code binds": (
        311,
        """
        def i():
            [x for x in (1,)]
            return x
            x = None


        def j():
            print(x)
            return
            x = None
        """,
    ),
    "a comprehension whose condition is false": (
        311,
        """
        def k(a):
            return (x for x in (y for y in a if False))
        """,
    ),
    "else of except* at the end": (
        311,
        """
        def f(a):
            try:
                with a() as b:
                    b.c()
            except* ValueError as e:
                a(e)
            else:
                a.fail('x')
        """,
    ),
    "guarded bodies without effect and what finally leaves": (
        311,
        """
        def f(a):
            try:
                pass
            except ValueError:
                a.b()
            finally:
                a.c()
            a.d()


        def g(a):
            try:
                pass
            except* ValueError:
                a.b()
            else:
                a.e()
            finally:
                a.c()
            a.d()


        def h(a):
            try:
                pass
            except:
                pass
            else:
                if a.b:
                    pass
            finally:
                pass
        """,
    ),
    "comprehensions without variables": (
        311,
        """
        def f(a, b):
            return [0 for a[0] in b], {0: a for a.b in b if a}


        async def g(a, b):
            with a():
                return [0 async for a[0] in b]
            return b
        """,
    ),
}

# Programs whose text need not come back, as long as what it compiles to does.
SAME_CODE = {
    "lambdas that end in several ways": (
        311,
        """
        f = lambda a: a.b(1 if isinstance(a, int) else 2)
        g = lambda a, b: a or b() and (a if b else 3)
        """,
    ),
    "super in a module that uses its name": (
        312,
        """
        def f(a):
            class C:
                def g(self, *args, **k):
                    super().g(*args, **k)
                    return super().h
            return C
        """,
    ),
    "tests of loops made of several conditions": (
        311,
        """
        def f(a, b, c):
            while a == 1 or (b and c != 2):
                a(b)
            while not (a and b):
                a(b)
            while a is not None and (a(b) or b):
                a(c)
                if not a: break
            return a


        def g(a, b):
            while a is None or i < a:
                try:
                    v = b[i]
                except IndexError:
                    break
                if v is a or v == a:
                    return i
                i += 1
            raise ValueError
        """,
    ),
    "chained comparisons whose ends are copied": (
        311,
        """
        def f(a, b):
            assert 0 <= a < b.c
            assert 1 <= a <= 12, a
            for x in b:
                if not 'a' <= x.lower() <= 'z':
                    return False
            return a


        def g(a):
            return a if 1 < a < 3 else 4


        def h(a):
            if 1 < a < 2 or a:
                return 2
            return 5


        k = lambda a: 'a' <= a <= 'z'
        l = lambda a, b: a and 'a' <= a <= 'z' <= b
        """,
    ),
    "conditions in conditional expressions": (
        311,
        """
        def f(a, b, c):
            d = a if b == c and c.e() else b
            return (d if (a if b else c) else 4), [d if a or b else c for d in a]
        """,
    ),
    "endless loops that are left in several ways": (
        311,
        """
        def f(a):
            with open(a) as b:
                while True:
                    c = b.read()
                    if c != a:
                        return False
                    if not c:
                        return True
        """,
    ),
    "ways out of a finally block and a handler": (
        311,
        """
        def f(a):
            if not a:
                return False
            try:
                with open(a) as b:
                    b.write()
            finally:
                a.unlink()
            return True
        """,
    ),
    "ways out of a loop in a with statement": (
        311,
        """
        def f(a):
            try:
                b = open(a)
            except OSError:
                return False
            with b:
                for c in b:
                    if c.startswith(a):
                        return True
            return False
        """,
    ),
    "handlers in handlers": (
        311,
        """
        def f(a):
            for x in a:
                try:
                    b = 3
                except OSError:
                    try:
                        if a:
                            if x:
                                b = 4
                    except OSError:
                        try:
                            if a:
                                if x:
                                    b = 5
                        except OSError:
                            pass
            return 42
        """,
    ),
    "a with statement at the end of a handler": (
        311,
        """
        def f(a):
            try:
                raise a(1)
            except ValueError:
                try:
                    raise a
                except KeyError:
                    with a() as b:
                        with a(2) as c:
                            c.d()
            return b.e().split()
        """,
    ),
    "statements on the lines of their bodies": (
        311,
        """
        def f(a):
            try: raise a
            except ValueError: pass
            try: raise a()
            except KeyError: pass
        """,
    ),
}


def _compiler(since, version):
    python = _interpreters.find(version)
    if version < since:
        pytest.skip(f"needs Python {_interpreters.version_name(since)}")
    if python is None:
        pytest.skip(f"no Python {_interpreters.version_name(version)} is found")
    return _grading.Compiler(version, python)


@pytest.mark.parametrize("version", [311, 312, 313])
@pytest.mark.parametrize("title", SAME_CODE)
def test_compiles_to_the_same(title, version):
    since, program = SAME_CODE[title]
    compiler = _compiler(since, version)
    try:
        [original] = compiler.compile([_recompile.Request(textwrap.dedent(program).lstrip(), "", 0)])
        source, reason, _, _ = bytecode.decompile_structured(original)
        assert source is not None, reason
        grades = _grading.check(compiler, [(original, source)])
        if grades[0][0] != _grading.IDENTICAL:
            grades = _grading.check(compiler, [(original, bytecode.decompile_structured(original, line_layout=True)[0])])
        assert grades == [(_grading.IDENTICAL, "")]
    finally:
        compiler.close()


@pytest.mark.parametrize("version", [311, 312, 313])
@pytest.mark.parametrize("title", PROGRAMS)
def test_comes_back_identical(title, version):
    since, program = PROGRAMS[title]
    compiler = _compiler(since, version)
    program = textwrap.dedent(program).lstrip()
    try:
        [original] = compiler.compile([_recompile.Request(program, "", 0)])
        source, reason, _, _ = bytecode.decompile_structured(original)
        assert source == program, reason
        assert _grading.check(compiler, [(original, source)]) == [(_grading.IDENTICAL, "")]
    finally:
        compiler.close()


@pytest.mark.parametrize("version", [312, 313])
def test_a_type_alias_of_a_class_stands_in_a_class(version):
    compiler = _compiler(312, version)
    try:
        [module] = compiler.compile([_recompile.Request("class C[A]:\n    type B[D] = dict[A, D]\n", "", 0)])
        alias = [code for code in _grading.code_objects(module) if code.co_name == "B"][-1]
        source, reason, _, _ = bytecode.decompile_structured(alias)
        assert source == "class _:\n    type B = dict[A, D]\n", reason
        assert _grading.check(compiler, [(alias, source)]) == [(_grading.IDENTICAL, "")]
    finally:
        compiler.close()
