"""Programs that test_runs.py runs: statements that lead elsewhere. By title: the first version that has the syntax, and the text.

Each has `run`, which is called with the numbers below CALLS. What is printed tells the order of things.
"""

FLOW = {
    "for loops with else, break and continue": (
        308,
        """
        def run(n):
            seen = []
            for i in range(n):
                for j in range(i):
                    if j == 2:
                        break
                    if (i + j) % 3 == 1:
                        continue
                    seen.append((i, j))
                else:
                    seen.append(i)
                    if i == 4:
                        break
                seen.append('next')
            else:
                return seen, 'through'
            return seen, 'left'
    """,
    ),
    "while loops": (
        308,
        """
        def run(n):
            steps = 0
            while n and steps < 3:
                n -= 1
                steps += 1
                while True:
                    if n % 2:
                        break
                    n = n // 2 or 1
                    print(n, steps)
            else:
                steps = -steps
            while steps != 0:
                if steps > 0:
                    return 'above', n
                steps += 1
            return 'below', n
    """,
    ),
    "try, except, else, finally": (
        308,
        """
        def one(n):
            try:
                print('body')
                result = [10 // n, {1: 'a', 2: 'b'}[n], int('x' if n == 2 else n)]
            except ZeroDivisionError:
                result = 'zero'
            except (KeyError, IndexError) as error:
                result = error.args
            else:
                print('else')
                return result
            finally:
                print('finally')
            return [result]


        def run(n):
            try:
                return one(n)
            except ValueError as e:
                n = str(e)
            print(n)
            try:
                return e
            except NameError as error:
                raise RuntimeError('no e') from error
    """,
    ),
    "ways out of finally blocks": (
        308,
        """
        def f(n):
            for i in range(3):
                try:
                    try:
                        if n == 0:
                            continue
                        if n == 1:
                            break
                        if n == 2:
                            return 'returned'
                        if n == 3:
                            raise KeyError(i)
                    finally:
                        print('inner', i)
                        if n == 4:
                            continue
                        if n == 3 and i == 1:
                            break
                except KeyError:
                    print('caught')
                finally:
                    print('outer', i)
            else:
                print('else')
            return 'end'


        def g(n):
            try:
                return 1 // n
            finally:
                if n < 3:
                    return 'instead'


        def run(n):
            return f(n), g(n)
    """,
    ),
    "contexts and causes": (
        308,
        """
        import sys


        def state():
            kind, error, _ = sys.exc_info()
            print(kind and kind.__name__, error)


        def f(n):
            try:
                try:
                    1 // n
                    [][n]
                except ZeroDivisionError:
                    state()
                    try:
                        raise ValueError('inner')
                    except ValueError:
                        state()
                    state()
                    raise
                except IndexError as error:
                    if n == 1:
                        raise TypeError('outer') from error
                    if n == 2:
                        raise TypeError('outer') from None
                    if n == 3:
                        raise TypeError('outer')
                    if n == 4:
                        raise
                finally:
                    state()
            except (ZeroDivisionError, OSError):
                raise RuntimeError('last')


        def run(n):
            state()
            try:
                f(n)
            finally:
                state()
    """,
    ),
    "with": (
        308,
        """
        class Manager:
            def __init__(self, name, swallow=False):
                self.name, self.swallow = name, swallow

            def __enter__(self):
                print('enter', self.name)
                return self

            def __exit__(self, kind, error, traceback):
                print('exit', self.name, kind and kind.__name__, error is None)
                return self.swallow


        def run(n):
            for i in range(2):
                with Manager('a', n == 0) as a, Manager('b'):
                    if n == i:
                        raise ValueError(n)
                    if n == 2:
                        continue
                    if n == 3:
                        break
                    with Manager('c', True) as [x]:
                        print('unreached')
                print('behind', a.name)
            else:
                return 'else'
            with Manager('d') as d:
                return d.name, i
    """,
    ),
    "context managers from generators": (
        308,
        """
        from contextlib import contextmanager, suppress


        @contextmanager
        def around(name):
            print('before', name)
            try:
                yield name.upper()
            except KeyError:
                print('key')
            else:
                print('well')
            finally:
                print('after', name)


        def run(n):
            with suppress(IndexError), around('x') as x:
                if n == 0:
                    raise KeyError(x)
                if n == 1:
                    raise IndexError(x)
                if n == 2:
                    raise ValueError(x)
                return x
            return 'suppressed'
    """,
    ),
    "short circuits": (
        308,
        """
        def t(x):
            print(x)
            return x


        def run(n):
            a = t(n) and t(n - 1) or t('neither')
            b = (t(n > 2) or t(n == 1)) and not (t(n == 4) and t('last'))
            c = t('yes') if (t(n) and n != 2) or n == 0 else t('no')
            d = t(1) if t(n % 2) else t(2) if t(n == 4) else t(3)
            assert n != 5 or t(''), f'five: {n}'
            return a, b, c, d, not n, not (a and b), [x or y for x, y in zip([0, 1, n], [n, 2, 3])]
    """,
    ),
    "variables without a value": (
        308,
        """
        def f(n):
            if n:
                x = n
            try:
                return x
            except UnboundLocalError as error:
                print(error)
            x = n
            del x
            return x


        def g(n):
            def inner():
                return y

            if n == 1:
                y = 2
            return inner()


        def h(n):
            for i in range(n):
                pass
            return i


        def run(n):
            if n == 4:
                return undefined
            if n == 5:
                global nothing
                del nothing
            return [f, g, h][n % 3](n // 3)
    """,
    ),
    "globals and module code": (
        308,
        """
        import os.path as path, sys
        from collections import OrderedDict as Ordered, abc
        from math import *

        counts = Ordered()
        for letter in 'abca':
            counts[letter] = counts.get(letter, 0) + 1
            if letter == 'c':
                break
        else:
            counts = None
        try:
            missing
        except NameError as error:
            message = str(error)
        with open(path.devnull) as file:
            empty = file.read()
        number: int = 3
        print(letter, counts, message, repr(empty))
        del letter


        def run(n):
            global number
            number += n
            if n == 1:
                from os.path import nothing
            if n == 2:
                import nothing.at_all
            if n == 3:
                import xml.dom as dom
                return dom.__name__
            return number, floor(2.5), isinstance([], abc.Sized), sorted(__annotations__)
    """,
    ),
    "exceptions in generators and loops": (
        308,
        """
        def parts(n):
            for i in range(n):
                try:
                    if i == 2:
                        raise KeyError(i)
                    yield i
                except GeneratorExit:
                    print('exit', i)
                    raise
                except KeyError as error:
                    yield error.args
                    continue
                finally:
                    print('finally', i)
                yield 'behind'


        def run(n):
            got = []
            for part in parts(n + 2):
                if part == n:
                    break
                got.append(part)
            try:
                next(iter(got[:n // 5]))
            except StopIteration:
                got.append('stopped')
            for _ in range(2):
                try:
                    got.append(int(str(got[-1])))
                    continue
                except ValueError:
                    if n == 1:
                        break
                finally:
                    got.append(len(got))
            return got
    """,
    ),
    "tables of conditions": (
        308,
        """
        def kind(n):
            if n < 0:
                return 'negative'
            elif n == 0:
                pass
            elif n in (1, 2):
                if n == 1:
                    name = 'one'
                else:
                    name = 'two'
                return name
            elif not n % 2 and n is not None:
                return 'even'
            else:
                raise ValueError(f'{n}?')
            return 'zero'


        def run(n):
            return kind(n), kind(-n)
    """,
    ),
    "match": (
        310,
        """
        class Point:
            __match_args__ = ('x', 'y')

            def __init__(self, x, y):
                self.x, self.y = x, y

            def __repr__(self):
                return f'Point({self.x}, {self.y})'


        def kind(value):
            match value:
                case 0 | 1 as small:
                    return 'small', small
                case -1.5 | 'text' | None | True:
                    return 'constant'
                case [Point(0, y=y), *_] | [Point(x=y), _, _] if y:
                    return 'points', y
                case Point(x, y) if x == y:
                    return 'diagonal', x
                case (a, [b, *rest], {'k': c, **others}):
                    return a, b, rest, c, others
                case str() | bytes() as text:
                    return 'text', text
                case {'a': [first, _], 'b': {}}:
                    return 'mapping', first
                case []:
                    return 'empty'
                case [single]:
                    return 'single', single
            return 'nothing'


        VALUES = [
            [0, 1, -1.5, 'text', None],
            [True, [Point(0, 3)], [Point(5, 0), 1, 2], Point(2, 2)],
            [Point(1, 2), (1, [2, 3, 4], {'k': 5, 'z': 6}), 'other', b'x'],
            [{'a': [1, 2], 'b': {'c': 3}}, {'a': [1, 2]}, [], ()],
            [[1], [Point(0, 0)], {}, (1, [], {'k': 1})],
        ]


        def run(n):
            if n == 5:
                Point.__match_args__ = 3
                try:
                    return kind(Point(1, 1))
                finally:
                    del Point.__match_args__
            return [kind(value) for value in VALUES[n]]
    """,
    ),
    "match in loops": (
        310,
        """
        def evaluate(program):
            stack = []
            for step in program:
                match step.split():
                    case ['push', number]:
                        stack.append(int(number))
                    case ['add' | 'sub' as name]:
                        b, a = stack.pop(), stack.pop()
                        stack.append(a + b if name == 'add' else a - b)
                    case ['skip', *_]:
                        continue
                    case ['stop']:
                        break
                    case [other, *_]:
                        raise ValueError(other)
                    case _:
                        return 'empty', stack
                print(stack)
            else:
                return stack
            return 'stopped', stack


        def run(n):
            program = ['push 3', 'skip it', 'push 4', ['add', 'sub', 'stop', '', 'what now', 'push x'][n], 'push 1']
            return evaluate(program)
    """,
    ),
    "except*": (
        311,
        """
        import sys


        def handled(n):
            errors = [ValueError(1), TypeError(2), ExceptionGroup('inner', [ValueError(3), OSError(4)]), KeyError(5)]
            try:
                if n == 5:
                    raise ValueError('alone')
                if n:
                    raise ExceptionGroup('outer', errors[:n])
            except* ValueError as group:
                print(repr(group), sys.exc_info()[1] is group)
                if n in (2, 4):
                    raise RuntimeError('new')
            except* (TypeError, OSError) as group:
                print(repr(group), group.exceptions)
                if n == 3:
                    raise
            else:
                print('else')
            finally:
                print('finally')
            return 'end'


        def run(n):
            for i in range(2):
                try:
                    raise ExceptionGroup('loop', [KeyError(i)])
                except* KeyError:
                    if n == 1:
                        print(i)
            return handled(n)
    """,
    ),
}
