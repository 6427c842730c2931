"""Programs of 3.11 to 3.13 that come back as they were written, and compile to identical code: type parameters, defaults that 3.13 adds
behind MAKE_FUNCTION, and what newer compilers copy and turn around."""

import subprocess
import textwrap

import pellucid._bytecode as bytecode
import pytest
from interpreters import interpreter

from pellucid import _grading, _interpreters, _recompile

PROGRAMS = {
    "type parameters of functions": (
        312,
        """
        def f[T: int, *Ts, **P](x: T = 3, *, k: P = []) -> T:
            return x
        """,
    ),
    "type parameters of classes": (
        312,
        """
        @dec
        class C[T, U: (int, str)](Base[int], metaclass=M):
            z: T = 1

            def g(self, y: T):
                return y

            def h[V](self, y: V) -> T:
                return y
        """,
    ),
    "type aliases": (
        312,
        """
        type A[K: int] = dict[K, int]
        type B = int | str
        """,
    ),
    "defaults of type parameters": (
        313,
        """
        def f[T = int, *Ts = *tuple[int, ...], **P = [str]](x: T):
            pass


        class C[T: int = bool]:
            pass


        type A[T = str] = list[T]
        """,
    ),
    "defaults and annotations of inner functions": (
        311,
        """
        def f(a):
            def inner(b: int, c=(1, 2), *, d=a) -> str:
                return a, b, c, d
            return inner, lambda e=a: e
        """,
    ),
    "conditions that lead back": (
        311,
        """
        def f(self):
            with self.guard():
                for key, value in self.items():
                    if value is not None:
                        yield key
            while self.head and self.tail:
                try:
                    self.pop()
                except KeyError:
                    break
        """,
    ),
    "ways out of nested handlers": (
        311,
        """
        def f(a):
            with a.b():
                try:
                    a()
                except ValueError:
                    try:
                        a(2)
                    except OSError as e:
                        pass
                a(3)
            return 4
        """,
    ),
    "a finally block that ends in several ways": (
        311,
        """
        def f(a, b):
            try:
                while True:
                    if a:
                        break
                    b()
                return a
            finally:
                if a > 0:
                    b(a)
        """,
    ),
    "a class body that ends in several ways": (
        311,
        """
        class C:
            if a < b:
                x = 1
            else:
                def x(self):
                    self.y = super().x()
        """,
    ),
    "generators that never yield": (
        311,
        """
        def f(a):
            a()
            return
            yield


        async def g(a):
            raise a
            yield
        """,
    ),
    "small exits are copied into branches": (
        312,
        """
        def f(self, a, b):
            if a == '0':
                self.append(False)
            elif a == '1':
                self.append(True)
            else:
                raise TypeError('bad value')
            self._value = 0


        def g(self, a):
            self.push('yes' if self.enabled else 'no')


        def h(self, a):
            self.tags = '' if a == 0 else 'l' + str(a)
        """,
    ),
    "or in front of a jump back": (
        311,
        """
        def f(items, found):
            for item in items:
                if item.name == 'a' or item.name == 'b':
                    found.append(item.value)
            return found
        """,
    ),
    "None from one branch of a returned expression": (
        311,
        """
        def f(self):
            return self.decoder.newlines if self.decoder else None


        def g(self, index):
            i = self.call(index)
            return None if i in ('', 'none') else self.number(i)
        """,
    ),
    "continue to the True of a loop": (
        311,
        """
        def f(self):
            while True:
                try:
                    self.read()
                    if not self.data:
                        break
                except KeyError:
                    continue
                self.count += 1
            return self.count
        """,
    ),
    "an exit behind a loop, copied over the jump to it": (
        312,
        """
        def f(new, old):
            while True:
                context = new.context
                if context is None:
                    return
                if context is old:
                    break
                new = context
            new.context = old
        """,
    ),
    "an else clause that only the order of names tells of": (
        312,
        """
        def f():
            try:
                s = socket.socket(socket.PF_RDS)
            except (AttributeError, OSError):
                return False
            else:
                s.close()
            return True


        def g():
            try:
                s = socket.socket(socket.PF_RDS)
            except (AttributeError, OSError):
                return False
            s.close()
            return True
        """,
    ),
    "values made bools": (
        311,
        """
        def f(a, b):
            x = not not a
            return g(not not a < b, x, not a == b), not not a and b
        """,
    ),
    "an f-string without expressions that is formatted": (
        311,
        """
        def f(a, b):
            x = f'%s.{{%s' % (a.b, b)
            return '%s %d' % (a, b), '%s%%' % (a,), '%s' % a
        """,
    ),
    "what follows an else clause": (
        311,
        """
        def f(mimedb, i):
            while mimedb.open:
                try:
                    ctype = mimedb.enum(i)
                except OSError:
                    return i.found
                else:
                    if ctype.name:
                        yield ctype
                i += 1
        """,
    ),
    "branches behind one that leaves": (
        311,
        """
        def f(a, p, x):
            if a:
                g()
            elif p:
                return 3
            elif x:
                r()
            h()


        def g(x):
            if x.a:
                return 1
            elif x.b:
                raise x.c
            else:
                y = x.e
                return y


        def h(x):
            if x.a:
                return 1
            if x.b:
                raise x.c
            y = x.e
            return y


        def k(xs):
            for x in xs:
                if x.a:
                    continue
                else:
                    x.b()
                x.d()
        """,
    ),
    "a loop ends a function, its test as wide as a return": (
        311,
        """
        def f(loop):
            while loop.x:
                run(loop)


        def g(self):
            while self.traced:
                self.untraced.append(self.traced.pop())
        """,
    ),
    "a loop around branches that starts again": (
        312,
        """
        def f(a):
            while True:
                if a.b == 3:
                    continue
                elif a.c:
                    break
                a.d()


        def g(a):
            while True:
                while a.b:
                    a.c()
                if a.d:
                    continue
                a.e()
        """,
    ),
    "more than one pass": (
        312,
        """
        def f():
            pass
            pass


        def g(a):
            a.b()
            pass
            pass
        """,
    ),
    "a chain of comparisons ends what is asserted": (
        311,
        """
        def f(a, b):
            assert a.b and 0 <= b <= a.c
            a.d = b
            assert a.e and 1 <= b < 5, a
            return b
        """,
    ),
    "branches of a branch that leave a loop": (
        311,
        """
        def f(a, b):
            while True:
                c = a.d()
                if b > 1:
                    if c <= a:
                        break
                elif c <= b:
                    break
            return c * b
        """,
    ),
    "a loop in the else clause of a try statement": (
        311,
        """
        def f(self, a):
            if self.a:
                try:
                    b = a.c()
                except AttributeError:
                    pass
                else:
                    while b:
                        d = b.e()
                        if not d:
                            break
                        b = b.g
                self.h()
            return self.i
        """,
    ),
    "a branch as wide as pass ends a with statement": (
        311,
        """
        def f(cm, a):
            for b in a:
                try:
                    with cm():
                        raise b()
                except a.E as e:
                    a.c(e)
                else:
                    a.d(b)
        """,
    ),
    "a handler leaves a loop through a with statement": (
        312,
        """
        def f(a, b):
            for x in a:
                with b(x):
                    y = x.read()
                    try:
                        y = y.decode()
                    except ValueError:
                        continue
                    with b(y):
                        x.load(y)
        """,
    ),
    "a handler returns a constant out of a with statement": (
        312,
        """
        def f(a, b):
            with a(b) as c:
                d = c.e()
                try:
                    d.f()
                except OSError:
                    return False
                d.g()
                return c
        """,
    ),
    "a loop whose handler goes on": (
        312,
        """
        def f(a, b):
            while True:
                try:
                    c, d = a.b(b)
                except ValueError:
                    a.sleep()
                else:
                    assert d is None, a
                    return c
        """,
    ),
    "an else clause in front of what follows": (
        312,
        """
        def f(a, b):
            try:
                c = a.b(b)
            except ValueError:
                return False
            else:
                if a.d(c):
                    return False
            b = a.e(b)
            return b.f
        """,
    ),
    "what is left of constants joined with or": (
        312,
        """
        def f(x):
            return True or True


        def g(x):
            return False and False


        def h(x):
            y = 1 or 1, 2, 3
            z = [1, 2, 3, *x]
            return [y or 2, 3, 4], [4 or 4, 5, 6], {0 and 0, 1, 2}
        """,
    ),
    "a conditional expression decides about a return in a loop": (
        312,
        """
        def f(a, b, c):
            while a < 1.0:
                d = b(a)
                if not (d if c else a in d):
                    return
                a *= 2
            c.warn(a)
        """,
    ),
    "a break behind a try statement": (
        312,
        """
        def f(a, b, c):
            for d in a:
                while True:
                    try:
                        if d is b:
                            c[d] = 1
                        else:
                            c.e(d)
                    except IndexError:
                        if len(c) == 256:
                            c += b
                            continue
                        c.g(d)
                    break
            return c
        """,
    ),
    "a default with as many lines as its function": (
        311,
        """
        def f(a='x\\n\\n', b=None):
            c = a
            return c
        """,
    ),
    "guarded bodies without effect": (
        311,
        """
        def f(x):
            hit = False
            try:
                pass
            except ValueError as e:
                hit = True
            else:
                x = 3
            finally:
                x.end()
            return hit, x


        def g(x):
            try:
                try:
                    pass
                except Exception as ex:
                    pass
            except Exception:
                pass


        def h(x):
            try:
                pass
            except* OSError:
                x.hit()
            try:
                pass
            finally:
                x.end()
        """,
    ),
    "try statements that stand one in the other": (
        311,
        """
        def f(x):
            try:
                try:
                    x.a()
                except OSError:
                    raise
                else:
                    x.b()
            finally:
                x.c()


        def g(x):
            try:
                try:
                    x.a()
                except* OSError:
                    x.b()
                finally:
                    x.c()
            except TypeError:
                x.d()
            finally:
                x.e()
        """,
    ),
    "ends as wide as a return": (
        311,
        """
        def f(data):
            try:
                check(data)
            finally:
                data = None


        def g(x):
            try:
                root = x()
            finally:
                del root


        def h(x):
            try:
                x()
            except BrokenPipeError:
                pass
            except OSError as e:
                if e.errno == 3:
                    pass
                else:
                    raise
        """,
    ),
    "returns that leave with statements": (
        311,
        """
        def f(x):
            with x():
                return


        def g(x):
            with x() as y:
                y.a()
                try:
                    return y.b()
                except KeyError:
                    y.c()
                    return False
        """,
    ),
    "ends of handlers in handlers": (
        311,
        """
        def f(x):
            try:
                x.a()
            except KeyError as e:
                y = x.b()
                try:
                    y.c()
                except ValueError as e:
                    x.d(e)
                    e.f = None
        """,
    ),
    "several values at once": (
        311,
        """
        def f(a, b, c):
            a, b, c = c.x, b.x, a.x
            a, b = b, a
            return a, b, c
        """,
    ),
}


@pytest.mark.parametrize("version", [311, 312, 313])
@pytest.mark.parametrize("title", PROGRAMS)
def test_comes_back_identical(title, version):
    since, program = PROGRAMS[title]
    python = _interpreters.find(version)
    if version < since:
        pytest.skip(f"needs Python {_interpreters.version_name(since)}")
    if python is None:
        pytest.skip(f"no Python {_interpreters.version_name(version)} is found")
    program = textwrap.dedent(program).lstrip()
    compiler = _grading.Compiler(version, python)
    try:
        [original] = compiler.compile([_recompile.Request(program, "", 0)])
        source, reason, _, _ = bytecode.decompile_structured(original)
        assert source == program, reason
        assert _grading.check(compiler, [(original, source)]) == [(_grading.IDENTICAL, "")]
    finally:
        compiler.close()


def test_code_that_a_program_made_has_no_places():
    """Constants that are one by one on the stack, or returned by two instructions, say nothing there."""
    script = (
        "import dis, marshal, sys; op = dis.opmap\n"
        "def f(a): pass\n"
        "code = bytes([op['RESUME'], 0, op['LOAD_CONST'], 1, op['LOAD_CONST'], 2, op['BUILD_TUPLE'], 2, op['POP_TOP'], 0,\n"
        "              op['LOAD_CONST'], 1, op['RETURN_VALUE'], 0])\n"
        "made = f.__code__.replace(co_code=code, co_consts=(None, 1, 2), co_linetable=b'', co_stacksize=2)\n"
        "sys.stdout.buffer.write(marshal.dumps(made))"
    )
    done = subprocess.run([interpreter(312).path, "-I", "-c", script], stdout=subprocess.PIPE, check=True)
    source, why, _, _ = bytecode.decompile_structured(bytecode.load_marshal(done.stdout, 312))
    assert source == "def f(a):\n    1, 2\n    return 1\n", why
