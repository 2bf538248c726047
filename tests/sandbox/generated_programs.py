"""Small programs by a random grammar: the same seed gives the same program.

They use what they were given a name for before, so that most of them run to their end; some fail on the way, and some
of those catch it. They come out the same on every Python: no sets of strings in their own order, no addresses, no
clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["generate"]

_INT, _FLOAT, _STR, _LIST, _DICT, _SET, _BOOL = "int", "float", "str", "list", "dict", "set", "bool"
_TYPES = (_INT, _FLOAT, _STR, _LIST, _DICT, _SET)
_WORDS = ("", "a", "tea", "Cake", "  padded ", "x,y,z", "naïve", "1984", "MiXed", "tab\\tnew")
_FAULTS = (
    "ZeroDivisionError",
    "IndexError",
    "KeyError",
    "ValueError",
    "TypeError",
    "AttributeError",
    "StopIteration",
    "AssertionError",
    "OverflowError",
    "UnicodeEncodeError",
)


def generate(seed: int) -> str:
    """Returns a program that leaves what it has made in `result`, or raises."""
    return _Writer(random.Random(seed)).program()


class _Writer:
    """Writes one program.

    Args:
        chance: where its choices come from.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names: dict[str, list[str]] = {kind: [] for kind in (*_TYPES, _BOOL)}
        self._functions: list[str] = []
        self._count = 0
        self._lines: list[str] = []
        self._depth = 0

    def program(self) -> str:
        for kind in _TYPES:
            self._assign(kind)
        for _ in range(self._chance.randint(6, 14)):
            self._statement()
        if self._chance.random() < 0.2:
            self._uncaught()
        kept = [name for kind in (_INT, _FLOAT, _STR, _LIST, _DICT) for name in self._names[kind]]
        sets = [f"sorted({name})" for name in self._names[_SET]]
        self._line(f"result = [{', '.join(kept + sets)}]")
        return "\n".join(self._lines)

    # Lines and names

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _block(self, head: str, *body: Callable[[], None]) -> None:
        self._line(head)
        self._depth += 1
        for write in body:
            write()
        self._depth -= 1

    def _new(self, lead: str = "v") -> str:
        self._count += 1
        return f"{lead}{self._count}"

    def _assign(self, kind: str) -> None:
        name = self._new()
        self._line(f"{name} = {self._expression(kind, 2)}")
        self._names[kind].append(name)

    # Expressions

    def _expression(self, kind: str, depth: int) -> str:
        known = self._names[kind]
        if known and (depth == 0 or self._chance.random() < 0.35):
            return self._chance.choice(known)
        if depth == 0:
            return self._literal(kind)
        return getattr(self, f"_make_{kind}")(depth - 1)

    def _literal(self, kind: str) -> str:
        chance = self._chance
        match kind:
            case "int":
                return str(chance.choice((0, 1, 2, 3, 7, 10, 255, -1, -5, 10**12, 2**70)))
            case "float":
                return chance.choice(("0.0", "0.1", "1.5", "-2.25", "1e-9", "3.14159", "1e16", "100.0"))
            case "str":
                return f'"{chance.choice(_WORDS)}"'
            case "list":
                return str([chance.randint(-5, 20) for _ in range(chance.randint(0, 5))])
            case "dict":
                return str({chance.choice("abcdef"): chance.randint(0, 99) for _ in range(chance.randint(0, 4))})
            case "set":
                return f"set({[chance.randint(0, 9) for _ in range(chance.randint(0, 5))]})"
            case _:
                return chance.choice(("True", "False"))

    def _plain(self, kind: str) -> str:
        """Returns an expression without quotes and braces: inside an f-string older Pythons take no others."""
        known = self._names[kind]
        return self._chance.choice(known) if known else self._literal(_INT)

    def _make_int(self, depth: int) -> str:
        a, b = self._expression(_INT, depth), self._expression(_INT, depth)
        text, items, table = (self._expression(kind, depth) for kind in (_STR, _LIST, _DICT))
        return self._chance.choice(
            (
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b} % 100003)", f"({a} // (abs({b}) + 1))",
                f"({a} % (abs({b}) + 2))", f"(abs({a}) % 7) ** 3", f"({a} & 255 | {b} & 15)", f"({a} ^ {b})",
                f"(~{a} >> 3)", f"(({a} & 63) << 5)", f"len({text})", f"sum({items})", f"len({table})",
                f"max({a}, {b})", f"round({self._expression(_FLOAT, depth)} % 1000)", f"({a} if {a} > {b} else {b})",
                f"int({self._expression(_BOOL, depth)})", f"{text}.count('a')", f"{table}.get('a', {a})",
                f"divmod({a}, 7)[1]", f"sum([x * x for x in {items} if x % 2])", f"hash({a} % 1000)",
                f"({a}).bit_length()", f"pow({a}, 3, 1009)", f"int(str({a}))", f"({a} or {b})",
            )
        )  # fmt: skip

    def _make_float(self, depth: int) -> str:
        a, b, n = self._expression(_FLOAT, depth), self._expression(_FLOAT, depth), self._expression(_INT, depth)
        return self._chance.choice(
            (
                f"({a} + {b})", f"({a} - {b})", f"({a} / (abs({b}) + 1.5))", f"({n} % 1000 / 4)",
                f"round({a} % 10, 2)",
                f"abs({a})", f"float({n} % 9973)", f"min({a}, {b})", f"({a} % 3.5)",
                f"(-{a})", "float('{}'.format(1.25))",
                f"sum([0.1] * ({n} % 5))", f"({a} if {a} < {b} else {b})",
            )
        )  # fmt: skip

    def _make_str(self, depth: int) -> str:
        a, b, n = self._expression(_STR, depth), self._expression(_STR, depth), self._expression(_INT, depth)
        items, pn, px, pa, pl = self._expression(_LIST, depth), *map(self._plain, (_INT, _FLOAT, _STR, _LIST))
        return self._chance.choice(
            (
                f"({a} + {b})[:40]", f"({a} * ({n} % 3))[:40]", f"{a}.upper()", f"{a}.title()", f"{a}.strip()",
                f"{a}[::-1]", f"{a}[1:-1]", f"{a}[{n} % 4:]", f"{a}.replace('a', '<a>')", f"'-'.join({a}.split(','))",
                f"f'{{{pn}}}|{{{pn} % 1000:>6}}|{{{pn} % 1000:#x}}'", f"f'{{{px}:.3f}} {{{px}:e}} {{{px}!r}}'",
                f"'{{:>8}}|{{:<5}}|{{:^7}}'.format({a}[:3], {n} % 100, 'mid')", f"('%05d %s' % ({n} % 1000, {a}))",
                f"str({n})", f"repr({a})", f"','.join([str(x) for x in {items}])", f"f'{{{pl}}}'",
                f"{a}.center(12, '*')",
                f"f'{{{pn} % 10**9:,}}'", f"{a}.partition('a')[2]", f"{a}.zfill(5)", f"''.join(sorted({a}))",
                f"{a}.swapcase()",
                f"str({self._expression(_DICT, depth)})", f"('yes' if {self._expression(_BOOL, depth)} else 'no')",
                f"{a}.encode().hex()[:20]", f"max({a}, {b})", f"' '.join([*{a}[:3], {b}])[:40]", f"f'{{{pa}!r:>10}}'",
            )
        )  # fmt: skip

    def _make_list(self, depth: int) -> str:
        a, b, n = self._expression(_LIST, depth), self._expression(_LIST, depth), self._expression(_INT, depth)
        text, table, group = (self._expression(kind, depth) for kind in (_STR, _DICT, _SET))
        return self._chance.choice(
            (
                f"({a} + {b})[:12]", f"sorted({a})", f"sorted({a}, reverse=True)", f"{a}[::-1]", f"{a}[{n} % 3:]",
                f"[x + 1 for x in {a}]", f"[x for x in {a} if x % 2 == 0]", f"list(range({n} % 6))",
                f"[*{a}, {n}][:12]",
                f"[ord(c) for c in {text}][:8]", f"list({table}.values())", f"sorted({group})", f"([{n}] * 2)",
                f"[i * x for i, x in enumerate({a})]", f"[x + y for x, y in zip({a}, {b})]", f"list(map(abs, {a}))",
                f"sorted({a}, key=lambda x: (x % 3, -x))", f"[len(w) for w in {text}.split()]",
                f"({a}[:2] + {b}[-2:])",
                f"[x for y in ({a}, {b}) for x in y][:12]", f"list(filter(None, {a}))", f"[max({a}, default={n})]",
                f"list(dict.fromkeys({a} + {b}))[:12]",
            )
        )  # fmt: skip

    def _make_dict(self, depth: int) -> str:
        a, b, n = self._expression(_DICT, depth), self._expression(_DICT, depth), self._expression(_INT, depth)
        text, items = self._expression(_STR, depth), self._expression(_LIST, depth)
        return self._chance.choice(
            (
                f"{{**{a}, **{b}}}", f"({a} | {b})", f"{{**{a}, 'k': {n}}}",
                f"{{c: {text}.count(c) for c in {text}[:5]}}",
                f"dict(zip('abc', {items}))", f"{{k: v + 1 for k, v in {a}.items()}}", f"dict(sorted({a}.items()))",
                f"{{str(x): x for x in {items}}}", f"dict(a={n}, b=len({text}))",
                f"({{v: len(k) for k, v in {{'p': 'q'}}.items()}} | {a})",
                f"dict(sorted({a}.items(), key=lambda kv: (-kv[1], kv[0])))",
            )
        )  # fmt: skip

    def _make_set(self, depth: int) -> str:
        a, b, items = self._expression(_SET, depth), self._expression(_SET, depth), self._expression(_LIST, depth)
        return self._chance.choice(
            (f"({a} | {b})", f"({a} & {b})", f"({a} - {b})", f"({a} ^ {b})", f"set({items})",
            f"{{x % 5 for x in {items}}}",
             f"{{*{a}, 99}}")
        )  # fmt: skip

    def _make_bool(self, depth: int) -> str:
        a, b = self._expression(_INT, depth), self._expression(_INT, depth)
        text, items, table = (self._expression(kind, depth) for kind in (_STR, _LIST, _DICT))
        return self._chance.choice(
            (f"({a} < {b})", f"({a} == {b})", f"(1 in {items})", f"('a' in {text})", f"('a' not in {table})",
            f"(not {text})",
             f"(0 <= {a} <= 100)", f"any([x > 3 for x in {items}])", f"all({items})", f"{text}.startswith('t')",
             f"isinstance({a}, int)", f"({a} < {b} and {b} != 3)", f"(bool({items}) is True)", f"{text}.isalpha()")
        )  # fmt: skip

    # Statements

    def _statement(self) -> None:
        choices: tuple[Callable[[], None], ...] = (
            self._fresh, self._fresh, self._show, self._augment, self._branch, self._loop, self._caught, self._function,
            self._kind, self._generator, self._closure, self._match, self._unpack, self._mutate, self._while,
            self._context, self._decorated, self._call, self._walrus,
        )  # fmt: skip
        self._chance.choice(choices)()

    def _fresh(self) -> None:
        self._assign(self._chance.choice(_TYPES))

    def _show(self) -> None:
        kind = self._chance.choice(_TYPES)
        value = self._expression(kind, 1)
        shown = f"sorted({value})" if kind == _SET else value
        self._line(
            self._chance.choice(
                (
                    f"print({shown})",
                    f"print('{kind}:', {shown}, sep=' ')",
                    f"print(f'{{{self._plain(kind if kind != _SET else _INT)}}}', end=';\\n')",
                )
            )
        )

    def _augment(self) -> None:
        kind = self._chance.choice((_INT, _STR, _LIST, _DICT, _SET, _FLOAT))
        sign = {_DICT: "|=", _SET: self._chance.choice(("|=", "&=", "-=", "^="))}.get(kind, "+=")
        name = self._chance.choice(self._names[kind])
        self._line(f"{name} {sign} {self._expression(kind, 1)}")

    def _mutate(self) -> None:
        items, table = self._chance.choice(self._names[_LIST]), self._chance.choice(self._names[_DICT])
        group, n = self._chance.choice(self._names[_SET]), self._expression(_INT, 1)
        self._line(
            self._chance.choice(
                (
                    f"{items}.append({n})", f"{items}.insert(0, {n})", f"{items}.sort()", f"{items}.extend([1, 2])",
                    f"{items}[:1] = [{n}, {n}]", f"del {items}[3:]", f"{table}['new'] = {n}",
                    f"{table}.pop('a', None)",
                    f"{table}.update(z={n})", f"{table}.setdefault('s', {n})", f"{group}.add({n} % 50)",
                    f"{group}.discard(1)",
                    f"{table}['a'] = {table}.get('a', 0) + 1", f"{items}.reverse()", f"{items}[0:0] = {items}[-1:]",
                )
            )
        )  # fmt: skip

    def _branch(self) -> None:
        self._block(f"if {self._expression(_BOOL, 2)}:", self._augment)
        if self._chance.random() < 0.5:
            self._block(f"elif {self._expression(_BOOL, 1)}:", self._show)
        self._block("else:", self._augment)

    def _loop(self) -> None:
        total = self._chance.choice(self._names[_INT])
        over = self._chance.choice(
            (
                f"{self._expression(_LIST, 1)}[:6]",
                f"range({self._chance.randint(1, 5)})",
                f"reversed({self._expression(_LIST, 1)}[:4])",
            )
        )

        def inner() -> None:
            self._line(f"{total} = ({total} * 3 + x) % 10007")
            word = self._chance.choice(("continue", "break", "pass"))
            self._block(f"if x == {self._chance.randint(0, 5)}:", lambda: self._line(word))

        self._block(f"for x in {over}:", inner)
        if self._chance.random() < 0.4:
            self._block("else:", lambda: self._line(f"{total} += 1"))

    def _walrus(self) -> None:
        made, last = self._new(), self._new()
        self._line(f"{last} = 0")
        self._line(f"{made} = [{last} for x in {self._expression(_LIST, 1)} if ({last} := x * 2) > 4]")
        self._names[_LIST].append(made)
        self._names[_INT].append(last)

    def _while(self) -> None:
        count = self._new("n")
        self._line(f"{count} = {self._chance.randint(1, 4)}")
        self._block(f"while {count}:", lambda: self._line(f"{count} -= 1"), self._augment)

    def _unpack(self) -> None:
        a, b, rest = self._new(), self._new(), self._new()
        self._line(f"{a}, {b}, *{rest} = [*{self._expression(_LIST, 1)}, {self._expression(_INT, 1)}, 5, 6]")
        self._names[_INT] += [a, b]
        self._names[_LIST].append(rest)
        if self._chance.random() < 0.5:
            self._line(f"{a}, {b} = {b}, {a}")

    def _risk(self) -> str:
        """Returns an expression that fails, often or always."""
        n, text, items, table = (self._expression(kind, 1) for kind in (_INT, _STR, _LIST, _DICT))
        return self._chance.choice(
            (
                f"{n} // ({n} - {n})", f"{n} % 0", f"1.5 / (0 * {n})", f"{items}[{n} % 3 + 20]",
                f"{table}['missing']",
                f"int({text} + 'x')", f"{text} + {n}", f"max({n}, 0).missing", "next(iter([]))", "[].pop()",
                f"{text}.index('zzz')",
                f"float('1e') + {n}", f"[1, 2].remove({n} + 10**20)", "{}.popitem()", f"len({n})",
                f"max({n}, 0)()", f"{items} < {n}",
                f"chr(-1 - abs({n}))", "'é'.encode('ascii')", "b'\\xff'.decode()", "max([])",
                f"undefined_{self._count}",
                f"'{{}} {{}}'.format({n})", f"'%d' % {text}", "int('')", "sorted([1, 'a'])", f"range(0).index({n})",
                "2.0 ** 5000", "(lambda a: a)()", f"{{[]: {n}}}", f"max(None, None, key=id)[{n}]", f"iter({n})",
                f"sum({text} + 'a')", "(1 << -1)",
            )
        )  # fmt: skip

    def _fault(self) -> str:
        kind = self._chance.choice(_FAULTS)
        if kind == "UnicodeEncodeError":
            return "raise ValueError(f'made {1 + 1}') from KeyError('cause')"
        return self._chance.choice((f"raise {kind}('made')", f"raise {kind}", f"raise {kind}('a', 2)"))

    def _caught(self) -> None:
        seen = self._new("e")
        told = self._chance.choice(("Exception", "(LookupError, ArithmeticError)", "ValueError", "TypeError"))
        if self._chance.random() < 0.5:
            self._block("try:", lambda: self._line(f"print('got', {self._risk()})"))
        else:
            self._block("try:", lambda: self._line(self._fault()))
        own = f"print(type({seen}).__name__, len({seen}.args), isinstance({seen}, LookupError))"
        self._block(f"except {told} as {seen}:", lambda: self._line(own))
        if told != "Exception":
            self._block("except Exception:", lambda: self._line("print('another')"))
        if self._chance.random() < 0.4:
            self._block("else:", lambda: self._line("print('fine')"))
        if self._chance.random() < 0.4:
            self._block("finally:", self._augment)

    def _uncaught(self) -> None:
        inner, outer = self._new("f"), self._new("f")
        body = self._fault() if self._chance.random() < 0.3 else f"return {self._risk()}"
        self._block(f"def {inner}(value):", lambda: self._line(body))
        if self._chance.random() < 0.5:
            self._block(
                f"def {outer}():",
                lambda: self._block("try:", lambda: self._line(f"return {inner}(1)")),
                lambda: self._block(
                    "except ValueError as error:", lambda: self._line("raise RuntimeError('wrapped') from error")
                ),
            )
            self._line(f"v0 = {outer}()")
        else:
            self._line(f"v0 = [{inner}(one) for one in (1, 2)]" if self._chance.random() < 0.3 else f"v0 = {inner}(2)")

    def _function(self) -> None:
        name = self._new("f")
        self._block(
            f"def {name}(a, b={self._chance.randint(0, 9)}, *rest, key='k', **named):",
            lambda: self._line("total = a + b + sum(rest)"),
            lambda: self._block("if total > 10:", lambda: self._line("return total * 2")),
            lambda: self._line("return total + len(key) + len(named)"),
        )
        self._functions.append(name)
        self._call()

    def _call(self) -> None:
        if not self._functions:
            return self._fresh()
        name, n = self._chance.choice(self._functions), self._expression(_INT, 1)
        made = self._new()
        call = self._chance.choice(
            (f"{name}({n})", f"{name}({n}, 2)", f"{name}(*[1, 2, 3], key='long')", f"{name}({n}, **{{'x': 1}})")
        )
        self._line(f"{made} = {call} % 100003")
        self._names[_INT].append(made)
        return None

    def _closure(self) -> None:
        name, made = self._new("f"), self._new()
        self._block(
            f"def {name}():",
            lambda: self._line("count = 0"),
            lambda: self._block(
                "def step(by=1):",
                lambda: self._line("nonlocal count"),
                lambda: self._line("count += by"),
                lambda: self._line("return count"),
            ),
            lambda: self._line("return step"),
        )
        self._line(f"step = {name}()")
        self._line(f"{made} = [step(), step(5), step({self._expression(_INT, 1)})]")
        self._names[_LIST].append(made)

    def _generator(self) -> None:
        name, made = self._new("g"), self._new()
        self._block(
            f"def {name}(items):",
            lambda: self._block("for one in items:", lambda: self._line("yield one * 2")),
            lambda: self._line(self._chance.choice(("yield from items[:2]", "return", "yield len(items)"))),
        )
        self._line(f"{made} = list({name}({self._expression(_LIST, 1)}))[:10]")
        self._names[_LIST].append(made)

    def _kind(self) -> None:
        name, child, one, made = self._new("K"), self._new("K"), self._new("o"), self._new()
        self._block(
            f"class {name}:",
            lambda: self._line("shared = 0"),
            lambda: self._block("def __init__(self, n):", lambda: self._line("self.n = n")),
            lambda: self._block(
                "def grow(self, by=1):", lambda: self._line("self.n += by"), lambda: self._line("return self")
            ),
            lambda: self._line("@property"),
            lambda: self._block("def double(self):", lambda: self._line("return self.n * 2")),
            lambda: self._block("def __eq__(self, other):", lambda: self._line("return self.n == other.n")),
            lambda: self._block("def __repr__(self):", lambda: self._line(f"return f'{name}({{self.n}})'")),
        )
        self._block(
            f"class {child}({name}):",
            lambda: self._block("def grow(self, by=1):", lambda: self._line("return super().grow(by * 2)")),
        )
        self._line(f"{one} = {self._chance.choice((name, child))}({self._expression(_INT, 1)})")
        self._line(
            f"print({one}.grow({self._chance.randint(1, 5)}), {one} == {name}({one}.n), isinstance({one}, {child}))"
        )
        self._line(f"{made} = {one}.double")
        self._names[_INT].append(made)

    def _match(self) -> None:
        made = self._new()
        subject = self._expression(self._chance.choice((_INT, _LIST, _DICT, _STR)), 1)
        self._block(
            f"match {subject}:",
            lambda: self._block("case 0 | 1:", lambda: self._line(f"{made} = 'small'")),
            lambda: self._block(
                "case int(number) if number > 100:", lambda: self._line(f"{made} = f'big {{number % 7}}'")
            ),
            lambda: self._block("case []:", lambda: self._line(f"{made} = 'empty'")),
            lambda: self._block(
                "case [first, *others]:", lambda: self._line(f"{made} = f'{{first}} and {{len(others)}}'")
            ),
            lambda: self._block(
                "case {'a': found, **left}:", lambda: self._line(f"{made} = f'{{found}} of {{sorted(left)}}'")
            ),
            lambda: self._block("case str():", lambda: self._line(f"{made} = 'text'")),
            lambda: self._block("case _:", lambda: self._line(f"{made} = 'other'")),
        )
        self._names[_STR].append(made)

    def _context(self) -> None:
        name = self._new("C")
        self._block(
            f"class {name}:",
            lambda: self._block(
                "def __enter__(self):", lambda: self._line("print('in')"), lambda: self._line("return 3")
            ),
            lambda: self._block(
                "def __exit__(self, kind, error, trace):",
                lambda: self._line("print('out', kind and kind.__name__)"),
                lambda: self._line("return kind is not None and issubclass(kind, LookupError)"),
            ),
        )
        self._block(
            f"with {name}() as given:",
            lambda: self._line("print(given)"),
            lambda: self._line(self._chance.choice(("{}['missing']", "[][3]", "given += 1"))),
        )

    def _decorated(self) -> None:
        wrap, name, made = self._new("d"), self._new("f"), self._new()
        self._block(
            f"def {wrap}(function):",
            lambda: self._block(
                "def inner(*args, **kwargs):",
                lambda: self._line("print('calls', function.__name__)"),
                lambda: self._line("return function(*args, **kwargs)"),
            ),
            lambda: self._line("return inner"),
        )
        self._line(f"@{wrap}")
        self._block(f"def {name}(x, /, y=2, *, z: int = 3) -> int:", lambda: self._line("return x * y + z"))
        self._line(f"{made} = {name}({self._expression(_INT, 1)}, z=1)")
        self._names[_INT].append(made)
