"""Programs that test_runs.py runs: functions, classes, expressions. By title: the first version that has the syntax, and the text.

Each has `run`, which is called with the numbers below CALLS. What is printed tells the order of things.
"""

VALUES = {
    "generators that are sent values": (
        308,
        """
        def averager():
            total = count = 0
            average = None
            while True:
                try:
                    term = yield average
                except ValueError as error:
                    print('thrown', error)
                    total = count = 0
                    continue
                if term is None:
                    break
                total += term
                count += 1
                average = total / count
            return count, average


        def delegate(results):
            try:
                while True:
                    results.append((yield from averager()))
            finally:
                print('closed', len(results))


        def run(n):
            results = []
            generator = delegate(results)
            got = [next(generator)]
            for i in range(n):
                got.append(generator.send(i))
                if i == 1:
                    got.append(generator.throw(ValueError('again')))
                if i == 3:
                    got.append(generator.send(None))
            if n == 4:
                generator.throw(KeyError('out'))
            generator.close()
            return got, results
    """,
    ),
    "closures": (
        308,
        """
        def counter(start):
            count = start
            calls = []

            def step(by=1):
                nonlocal count
                count += by
                calls.append(count)

                def back():
                    nonlocal count
                    count -= by
                    return count

                return back

            def read():
                return count, calls

            return step, read


        def run(n):
            step, read = counter(n)
            backs = [step(), step(n), step(by=3)]
            print(read())
            values = [back() for back in backs]
            functions = [lambda x, i=i: (x, i, n) for i in range(n)]
            if n == 5:
                del n
            return values, read(), [function(1) for function in functions]
    """,
    ),
    "classes": (
        308,
        """
        class Meta(type):
            def __new__(cls, name, bases, space, **named):
                made = super().__new__(cls, name, bases, space)
                made.named = sorted(named)
                return made

            def __init__(cls, name, bases, space, **named):
                super().__init__(name, bases, space)


        class Base(metaclass=Meta, key=1):
            '''About it.'''

            size: int = 3
            doubled = [i * 2 for i in range(size)]
            if size > 2:
                large = True

            def __init__(self, n):
                self.n = n

            @property
            def value(self):
                return self.n

            @value.setter
            def value(self, new):
                self.n = new

            def __private(self):
                return 'base'

            def call(self):
                return self.__private()


        class Derived(Base, other=2):
            def __init__(self, n):
                super().__init__(n + 1)

            @property
            def value(self):
                return super().value, __class__.__name__, [super(Derived, self).call() for _ in 'a']

            @classmethod
            def make(cls, *args):
                return cls(*args)

            @staticmethod
            def fixed():
                return 4


        def run(n):
            class Local(Derived):
                number = n

                def call(self):
                    return n, self.number, super().call()

            thing = Local.make(n)
            if n == 2:
                thing.value = 1
            return thing.value, thing.call(), Local.fixed(), Local.__qualname__, Base.__doc__, Derived.named, Base.doubled, Base.large
    """,
    ),
    "super calls": (
        308,
        """
        class A:
            def f(self, *args, **named):
                return ['A', args, sorted(named)]

            x = 1


        class B(A):
            def f(self, *args, **named):
                return ['B', super().f(*args, k=1, **named), super().x]


        class C(A):
            def f(self, a, b=2):
                return ['C', super().f(a, b)]


        class D(B, C):
            def f(self, n):
                call = super().f
                return [call(n), super(B, self).f(n), super().x]

            def __getattr__(self, name):
                return super().__getattribute__(name[:1])


        def run(n):
            if n == 3:
                return D().missing
            return D().f(n), D().xx
    """,
    ),
    "calls with stars": (
        308,
        """
        def t(x):
            print(x)
            return x


        def f(a, /, b=2, *rest, c, d=4, **named):
            return a, b, rest, c, d, named


        def run(n):
            values = list(range(n))
            if n == 5:
                try:
                    return f(*values, c=1, **{'c': 2})
                except TypeError as error:  # what it says depends on the form of the call up to 3.8
                    return type(error)
            return (
                f(t(1), *t(values), t(3), c=t(4), **t({'x': 1}), y=t(5)),
                f(*values, 9, c=0),
                [*values, *'ab', t(n)],
                {*values, n},
                {**{'a': n}, 'b': t(2), **{'a': 3}},
                (*values, 1),
                max(*values, 2),
            )
    """,
    ),
    "comprehensions": (
        308,
        """
        scale = 10


        class Body:
            n = 2
            scale: int = 3
            squares = [i * i for i in range(n)]
            scaled = [scale * i for i in squares]  # by the global one
            names = {str(i): i for i in squares if i}


        def run(n):
            x = 'outer'
            pairs = [(x, y) for x in range(n) if x % 2 for y in range(x) if y != 1]
            names = {x: {y for y in range(x)} for x in range(n)}
            functions = [lambda: (x, n) for x in range(n)]
            generator = (10 // (x - 3) for x in range(n))
            nested = [[i * j for j in range(i)] for i in [k for k in range(n)]]
            same = [([x for x in range(x)], [lambda: x for x in 'ab'][1](), x) for x in range(n)]
            cells = {x: [f() for f in [lambda y=x: x + y for x in range(x)]] for x in range(n)}
            if n == 4:
                return list(generator)
            body = Body.scale, Body.scaled, Body.squares, Body.names
            return x, pairs, names, [f() for f in functions], sum(generator), nested, same, cells, body
    """,
    ),
    "f-strings": (
        308,
        """
        class Shown:
            def __format__(self, spec):
                print('format', spec)
                return f'<{spec}>'

            def __repr__(self):
                return 'Shown\\u00e9'


        def run(n):
            s, w = Shown(), 8
            if n == 5:
                return f'{n:{w}q}'
            return (
                f'{s}{s!r}{s!a:>{w}}{s:{n}{w}}',
                f'{n=} {n + 1 = :>{w}} {{}} {n!s:>4}%',
                f'{(lambda x: x * 2)(n)} {[i for i in range(n)]} {"a" if n else "b"}',
                '%s and %r, %5d' % (n, 'x', n),
                f'{n:.2f}' f'{n:02}' 'plain',
            )
    """,
    ),
    "chained comparisons": (
        308,
        """
        def t(x):
            print(x)
            return x


        def run(n):
            a = t(1) < t(n) <= t(3) != t(2)
            if not t(0) < t(n) < t(4):
                a = a, 'outside'
            while t(n) < t(3) < t(5):
                n += 1
            b = [i for i in range(5) if 1 <= i < n]
            return a, b, 1 < n is not None in [True], (0 < n < 3) == True, n == n != 3 or n
    """,
    ),
    "assignment expressions": (
        308,
        """
        total = 0


        def read(data):
            while (piece := next(data, None)) is not None and piece != 3:
                yield piece


        def run(n):
            global total
            pieces = list(read(iter(range(n))))
            last = [total := total + p for p in pieces]
            if (count := len(pieces)) > 2 and (first := pieces[1]):
                return count, first, total
            found = any((witness := p) > 1 for p in range(n))
            return found and witness, (y := n, y + 1), last, f'{(z := n)}', z
    """,
    ),
    "assignments and their order": (
        308,
        """
        class Log:
            def __init__(self):
                self.items = {}

            def __getitem__(self, key):
                print('get', key)
                return self.items.get(key, 0)

            def __setitem__(self, key, value):
                print('set', key, value)
                self.items[key] = value

            def __delitem__(self, key):
                print('del', key)
                del self.items[key]


        def t(x):
            print(x)
            return x


        def run(n):
            log = Log()
            log[t('a')] = log[t('b')] = t(n)
            log[t('a')] += t(2)
            log[t(1):t(n)] = log['a'] * 2 if n != 3 else None
            x, (y, *log[t('c')]), z = t([1, range(1, n + 1), 3])
            x, y, z = z, x, y
            (a, b), c = (x, y), z
            a, b = b, a
            log.items['d'] = log.items.get('d', []) or [n]
            log.items['d'] += [1]
            log.items['d'][0] **= 2
            del log['b'], (x, y)
            if n == 2:
                del log['b']
            return sorted(log.items.items(), key=repr), a, b, c, z
    """,
    ),
    "functions and their facts": (
        308,
        """
        def decorate(*args):
            print('decorate', args)

            def around(function):
                print('around', function.__name__)

                def inner(*given, **named):
                    return args, function(*given, **named)

                inner.__wrapped__ = function
                return inner

            return around


        @decorate(1)
        @decorate(2, 3)
        def f(a: 'first', b=[1], /, c: int = 2, *, d=None, **rest: str) -> bool:
            '''About f.'''
            b.append(c)
            return a, b, d, rest


        def run(n):
            inner = f.__wrapped__.__wrapped__
            if n == 0:
                return inner.__defaults__, inner.__kwdefaults__, inner.__annotations__, inner.__doc__, inner.__qualname__, inner.__module__
            if n == 1:
                return f(b=1)
            if n == 2:
                return inner(1, 2, 3, 4)
            f(1)
            return f(n, *[[]] * (n % 2), d=(lambda *, k=n: k)(), z=n), (lambda: (yield))().__class__.__name__
    """,
    ),
    "constants": (
        308,
        """
        def run(n):
            values = [-0.0, 0.0, 0, False, 1e309, -1e309, 2j, -2j, 1e309j]
            values += [b'\\x00\\xff', 'a\\n\\'"', '\\ud800\\U0001f600', None, ..., (), (1, (True, 1.0))]
            if n == 0:
                return [ascii(value) for value in values]
            large = (1 << 70, -(1 << 64), 0xFFFF_FFFF, 1e16, 1e-7, 123456789012345678901234567890)
            if n == 1:
                return large, 2**70, 'ab' * 3, (1, 2)[1], -(5), ~5, 7 // -2
            return n in {1, 2, 'x'}, n in (3, 4), n in [5], (n,) * 3, [1, 2, 3], __debug__, 1e309 - 1e309
    """,
    ),
    "async": (
        308,
        """
        import asyncio


        class Manager:
            def __init__(self, swallow):
                self.swallow = swallow

            async def __aenter__(self):
                await asyncio.sleep(0)
                print('enter')
                return self

            async def __aexit__(self, kind, error, traceback):
                print('exit', kind and kind.__name__)
                await asyncio.sleep(0)
                return self.swallow


        async def values(n):
            try:
                for i in range(n):
                    await asyncio.sleep(0)
                    got = yield i
                    if got:
                        print('got', got)
            finally:
                print('values end')


        async def work(n):
            async with Manager(n != 2) as manager, Manager(False):
                async for i in values(n):
                    if i == 2:
                        raise ValueError(i)
                    print([j async for j in values(i)], {j: k async for j in values(2) for k in range(j)})
                else:
                    print('else')
                    if n == 1:
                        return 'early'
            generator = values(2)
            print(await generator.asend(None), await generator.asend('sent'))
            await generator.aclose()
            if n == 4:
                await asyncio.wait_for(asyncio.sleep(10), 0.001)
            return await asyncio.gather(*[one(i) for i in range(n)]), [await one(i) for i in range(2)]


        async def one(i):
            return i * (await one(i - 1) if i else 1)


        def run(n):
            return asyncio.run(work(n))
    """,
    ),
    "loops of awaits": (
        308,
        """
        import asyncio


        async def source(queue, n):
            for i in range(n):
                await queue.put(i)
            await queue.put(None)


        async def sink(queue):
            result = []
            while (item := await queue.get()) is not None:
                if item == 1:
                    continue
                try:
                    result.append(10 // item)
                except ZeroDivisionError:
                    result.append(await asyncio.sleep(0, 'zero'))
                finally:
                    await asyncio.sleep(0)
                if item == 4:
                    break
            else:
                result.append('through')
            return result


        async def main(n):
            queue = asyncio.Queue(1)
            task = asyncio.ensure_future(source(queue, n))
            result = await sink(queue)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                result.append('cancelled')
            return result


        def run(n):
            return asyncio.run(main(n))
    """,
    ),
    "recursion and sorting": (
        308,
        """
        def permutations(items):
            if len(items) <= 1:
                yield tuple(items)
                return
            for i, item in enumerate(items):
                for rest in permutations(items[:i] + items[i + 1 :]):
                    yield (item, *rest)


        def quick(items):
            if not items:
                return []
            head, *tail = items
            return quick([x for x in tail if x < head]) + [head] + quick([x for x in tail if not x < head])


        def run(n):
            order = sorted(permutations('abc'), key=lambda p: (p[n % 3], p))
            return quick([(7 * i + n) % 11 for i in range(10)]), order, len(list(permutations(list(range(n)))))
    """,
    ),
    "type parameters": (
        312,
        """
        type Alias[T] = list[T] | None


        class Box[T: (int, str), *Ts, **P](dict[str, T]):
            def get_it[U](self, other: U) -> tuple[T, U]:
                return other, __class__.__name__


        def first[T: int](items: list[T], *, default: T = 3) -> T:
            for item in items:
                return item
            return default


        def run(n):
            if n == 0:
                return Alias.__type_params__, Alias.__value__, Box.__type_params__, first.__type_params__, first.__annotations__
            if n == 1:
                return Box.__type_params__[0].__constraints__, first.__type_params__[0].__bound__, Box.__orig_bases__
            return Box().get_it(n), first(list(range(n - 2, n))), first([])
    """,
    ),
}
