"""The values of claripy's expressions as forms: one expression of VEX at a time, while a routine runs in angr.

Each expression that VEX computes becomes one new variable, whose form is on record. An operation without a rule gives
an atom that may have any value, so that a routine whose result depends on it isn't proven.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kdyno.understand.lab.word_sums import Form, WordSums

LESS = {"__lt__": (0, 1, False), "ULT": (0, 1, False), "__le__": (0, 1, True), "ULE": (0, 1, True)}
MORE = {"__gt__": (1, 0, False), "UGT": (1, 0, False), "__ge__": (1, 0, True), "UGE": (1, 0, True)}
COMPARISONS = LESS | MORE
"""By operation: the places of the smaller and the larger operand, and whether they may be equal."""
SOON = ("Extract", "__and__", "__add__")
"""The operations whose forms are made at once, since they may be numbers: the size, whose upper half is random. Others
wait until something depends on them, which few of the flags' words ever do.
"""


class WordValues:
    """The forms of the variables and expressions of one run."""

    def __init__(self, claripy: Any) -> None:
        self.claripy, self.sums = claripy, WordSums()
        self.expressions: dict[str, Any] = {}
        """What each variable was made for, by its name."""
        self.by_variable: dict[str, Form] = {}
        self.exclusive: dict[Form, tuple[Form, Form]] = {}
        """The operands of an exclusive or, by its value."""
        self.rules: dict[str, Callable[[Any], Form | None]] = {
            "BVV": lambda value: Form(constant=value.args[0]),
            "BVS": self._variable,
            "Concat": self._concatenation,
            "ZeroExt": lambda value: self.form(value.args[1]),
            "Extract": self._extract,
            "Reverse": self._reverse,
            "__add__": self._sum,
            "__lshift__": self._left_shift,
            "LShR": self._right_shift,
            "__and__": self._mask,
            "__or__": self._or,
            "__xor__": self._exclusive_or,
            "If": lambda value: self._choice(value, {}),
        }

    def variable(self, name: str, bits: int) -> Any:
        """Return a new variable that may have any value."""
        return self.claripy.BVS(name, bits, explicit_name=True)

    def named(self, value: Any) -> Any:
        """Return a number or a variable in the place of an expression."""
        if value.op in ("BVS", "BVV") or not isinstance(value, self.claripy.ast.BV):
            return value
        variable = self.variable(f"value_{len(self.expressions)}", value.size())
        self.expressions[variable.args[0]] = value
        if value.op in SOON:
            form = self.form(variable)
            if not form.terms:
                return self.claripy.BVV(form.constant, value.size())
        return variable

    def form(self, value: Any) -> Form:
        """Return the form of an expression: its integer without a sign."""
        rule = self.rules.get(value.op)
        form = rule(value) if rule else None
        return self.sums.atom((1 << value.size()) - 1) if form is None else form

    def _variable(self, value: Any) -> Form:
        name = value.args[0]
        if name not in self.by_variable:
            expression = self.expressions.get(name)
            any_value = self.sums.atom((1 << value.size()) - 1) if expression is None else None
            self.by_variable[name] = any_value or self.form(expression)
        return self.sums.in_halves(self.by_variable[name])

    def _concatenation(self, value: Any) -> Form:
        form = Form()
        for part in value.args:
            form = form.times(1 << part.size()).plus(self.form(part))
        return form

    def _extract(self, value: Any) -> Form:
        high, low, whole = value.args
        quotient, _ = self.sums.divide(self.form(whole), low)
        return self.sums.divide(quotient, high - low + 1)[1]

    def _reverse(self, value: Any) -> Form:
        rest, form = self.form(value.args[0]), Form()
        for _ in range(value.size() // 8):
            rest, last = self.sums.divide(rest, 8)
            form = form.times(256).plus(last)
        return form

    def _sum(self, value: Any) -> Form:
        """Return a sum. VEX adds the carry of ADC to a sum of two words; all three are added at once here."""
        parts = [self.sums.in_halves(form) for form in [self.form(part) for part in value.args]]
        form = Form()
        for part in parts:
            form = form.plus(part)
        if len(parts) == 2 and self.sums.most(form) >> value.size():
            for whole, carry in (parts, parts[::-1]):
                dividend = self.sums.dividend(whole, value.size())
                if dividend and self.sums.is_bit(carry):
                    form = dividend.plus(carry)
        return self.sums.divide(form, value.size())[1]

    def _left_shift(self, value: Any) -> Form | None:
        whole, by = value.args
        if by.op != "BVV":
            return None
        kept = max(value.size() - by.args[0], 0)
        return self.sums.divide(self.form(whole), kept)[1].times(1 << by.args[0])

    def _right_shift(self, value: Any) -> Form | None:
        whole, by = value.args
        return self.sums.divide(self.form(whole), by.args[0])[0] if by.op == "BVV" else None

    def _mask(self, value: Any) -> Form | None:
        """Return the value of an and with a number: of each run of its ones, the bits in their places."""
        *wholes, mask = sorted(value.args, key=lambda part: bool(part.op == "BVV"))
        if len(wholes) != 1 or mask.op != "BVV":
            return None
        whole, form, ones, low = self.form(wholes[0]), Form(), mask.args[0], 0
        while ones >> low:
            low += trailing_zeros(ones >> low)
            length = trailing_zeros(~(ones >> low))
            bits = self.sums.divide(self.sums.divide(whole, low)[0], length)[1]
            form, low = form.plus(bits, 1 << low), low + length
        return form

    def _or(self, value: Any) -> Form | None:
        """Return the sum of parts of which no two have a bit in common."""
        form = self.form(value.args[0])
        for part in map(self.form, value.args[1:]):
            if not self._are_apart(form, part) and not self._are_apart(part, form):
                return None
            form = form.plus(part)
        return form

    def _are_apart(self, above: Form, below: Form) -> bool:
        limit = 1 << self.sums.most(below).bit_length()
        return all(factor % limit == 0 for _, factor in above.terms) and above.constant % limit == 0

    def _exclusive_or(self, value: Any) -> Form:
        whole = Form()
        for part in map(self.form, value.args):
            whole = self._exclusive_pair(whole, part, value.size())
        return whole

    def _exclusive_pair(self, one: Form, other: Form, bits: int) -> Form:
        """Return what an exclusive or undoes: VEX keeps the second operand of ADC as one with the carry."""
        if one == other:
            return Form()
        if Form() in (one, other):
            return one.plus(other)
        for made, operand in ((one, other), (other, one)):
            operands = self.exclusive.get(made, ())
            if operand in operands:
                return operands[1 - operands.index(operand)]
        made = self.sums.atom((1 << bits) - 1)
        self.exclusive[made] = one, other
        return made

    def _choice(self, value: Any, assumed: Mapping[int, int]) -> Form | None:
        """Return a choice between two numbers, or of what both sides are equal to: the carry of an addition."""
        condition, *sides = value.args
        bit = self._bit(condition, assumed)
        if bit is None:
            return None
        if all(side.op == "BVV" for side in sides):
            one, other = (side.args[0] for side in sides)
            return Form(constant=other).plus(bit, one - other)
        if not bit.terms:
            return self._side(sides[1 - bit.constant], assumed)
        [(atom, _)] = bit.terms
        one, other = (self._side(side, {**assumed, atom: known}) for side, known in zip(sides, (1, 0), strict=True))
        return one if one == other else None

    def _side(self, value: Any, assumed: Mapping[int, int]) -> Form | None:
        return self._choice(value, assumed) if value.op == "If" else self.form(value)

    def _bit(self, condition: Any, assumed: Mapping[int, int]) -> Form | None:
        """Return the form of a condition, which is one atom or a number: 1 where it is true. None: no rule has it."""
        if condition.op in COMPARISONS:
            smaller, larger, or_equal = COMPARISONS[condition.op]
            forms = [self.form(operand) for operand in condition.args]
            return self.sums.less(forms[smaller], forms[larger], assumed, or_equal=or_equal)
        if condition.op == "__ne__" and condition.args[1].op == "BVV" and condition.args[1].args[0] == 0:
            form = self.form(condition.args[0])
            return form if self.sums.is_bit(form) else None
        return None


def trailing_zeros(number: int) -> int:
    """Return the number of zeros below the lowest one of a number, which isn't zero. Pure."""
    return (number & -number).bit_length() - 1
