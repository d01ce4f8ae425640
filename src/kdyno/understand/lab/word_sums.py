"""Exact arithmetic of machine words, as far as sums with carries need it.

Each value of a word is an integer here: a form, which is linear in atoms. An atom is a byte of the content, a carry, or
one half of a division by a power of two. A word that doesn't hold a sum is sum - 2^64 * carry, without any loss. So
what a routine adds stays linear, where a solver would have to look into each adder. RFC 1071, part 2, has the carries
of such sums; `word_lemmas` has the rules that are used here as lemmas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """An integer: a constant and multiples of atoms, which are numbered."""

    terms: tuple[tuple[int, int], ...] = ()
    """Atoms in order, each with its factor, which isn't zero."""
    constant: int = 0

    @property
    def atoms(self) -> set[int]:
        """The atoms that it depends on."""
        return {atom for atom, _ in self.terms}

    def plus(self, other: Form, factor: int = 1) -> Form:
        """Return the sum of this form and a multiple of another."""
        terms = dict(self.terms)
        for atom, times in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * times
        return _form(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Form:
        """Return a multiple of this form."""
        return Form().plus(self, factor)

    def replaced(self, atom: int, value: Form) -> Form:
        """Return this form with a form in the place of an atom."""
        terms = dict(self.terms)
        factor = terms.pop(atom, 0)
        return _form(terms, self.constant).plus(value, factor) if factor else self


def _form(terms: Mapping[int, int], constant: int) -> Form:
    return Form(tuple(sorted((atom, factor) for atom, factor in terms.items() if factor)), constant)


class WordSums:
    """The atoms of one run of a routine, with what is known of them."""

    def __init__(self) -> None:
        self.limits: list[int] = []
        """The largest value of each atom; the smallest is zero."""
        self.definitions: dict[int, Form] = {}
        """What an atom is equal to, in atoms that are older."""
        self.dividends: dict[int, Form] = {}
        """By a quotient and by its remainder: what was divided."""
        self.remainders: dict[int, int] = {}
        """By a quotient: its remainder."""
        self.halves: dict[Form, Form] = {}
        """A form as quotient * 2^bits + remainder, once it was divided."""
        self.carries: dict[int, tuple[int, int]] = {}
        """By a carry: the remainder beside it, and the limit of their sum."""
        self.divisions: dict[tuple[Form, int], tuple[Form, Form]] = {}

    def atom(self, limit: int, definition: Form | None = None) -> Form:
        """Return a new atom from 0 to a limit."""
        number = len(self.limits)
        self.limits.append(limit)
        if definition is not None:
            self.definitions[number] = definition
        return Form(((number, 1),))

    def most(self, form: Form) -> int:
        """Return a limit of a form: no content makes it larger."""
        terms, total = dict(form.terms), form.constant
        for carry, (remainder, limit) in self.carries.items():
            times = min(terms.get(carry, 0), terms.get(remainder, 0))
            if times > 0:
                terms[carry] -= times
                terms[remainder] -= times
                total += times * limit
        return total + sum(factor * self.limits[atom] for atom, factor in terms.items() if factor > 0)

    def least(self, form: Form) -> int:
        """Return a lower limit of a form."""
        return form.constant + sum(factor * self.limits[atom] for atom, factor in form.terms if factor < 0)

    def is_bit(self, form: Form) -> bool:
        """Return whether a form is 0, 1 or one atom that has no other values."""
        return form in (Form(), Form(constant=1)) or (
            len(form.terms) == 1 and form == Form(((form.terms[0][0], 1),)) and self.most(form) == 1
        )

    def in_halves(self, form: Form) -> Form:
        """Return a form as its halves, once it was divided, and each divided atom as its own."""
        if form in self.halves:
            return self.in_halves(self.halves[form])
        for atom, factor in form.terms:
            single = Form(((atom, 1),))
            if single in self.halves:
                form = form.plus(single, -factor).plus(self.in_halves(self.halves[single]), factor)
        return form

    def divide(self, form: Form, bits: int) -> tuple[Form, Form]:
        """Return the quotient and the remainder of a form that isn't negative, by 2^bits."""
        form = self.in_halves(form)
        if (form, bits) not in self.divisions:
            quotient, remainder = self.divisions[form, bits] = self._divide(form, bits)
            halves = quotient.times(1 << bits).plus(remainder)
            if halves != form:
                self.halves[form] = halves
        return self.divisions[form, bits]

    def _divide(self, form: Form, bits: int) -> tuple[Form, Form]:
        size = 1 << bits
        if self.most(form) < size:
            return Form(), form
        if doubled := self._divide_doubled(form, bits):
            return doubled
        multiple = _form({atom: factor >> bits for atom, factor in form.terms}, form.constant >> bits)
        if multiple != Form():
            quotient, remainder = self.divide(form.plus(multiple, -size), bits)
            return quotient.plus(self.in_halves(multiple)), remainder
        most = self.most(form)
        quotient = self.atom(most >> bits)
        remainder = self.atom(size - 1, form.plus(quotient, -size))
        [(upper, _)], [(lower, _)] = quotient.terms, remainder.terms
        self.dividends |= {upper: form, lower: form}
        self.remainders[upper] = lower
        if most <= 2 * (size - 1):
            self.carries[upper] = lower, size - 1
        return quotient, remainder

    def _divide_doubled(self, form: Form, bits: int) -> tuple[Form, Form] | None:
        """Return the division of a form that was (2^bits + 1) * unit, modulo 2^(2 * bits); None: it wasn't.

        The kernel folds a word by adding itself to it, rotated by half of its bits.
        """
        size, dividend = 1 << bits, self.dividend(form, 2 * bits)
        if dividend is None or any(
            factor % (size + 1) for factor in (dividend.constant, *dict(dividend.terms).values())
        ):
            return None
        unit = _form({atom: factor // (size + 1) for atom, factor in dividend.terms}, dividend.constant // (size + 1))
        carry, remainder = self.divide(unit, bits)
        lost = self.definitions[form.terms[0][0]].plus(dividend, -1)
        lost = _form({atom: factor >> bits for atom, factor in lost.terms}, 0)
        return carry.times(size + 1).plus(remainder).plus(lost), remainder

    def dividend(self, form: Form, bits: int) -> Form | None:
        """Return what a form is the remainder of by 2^bits; None: it isn't one."""
        if len(form.terms) != 1 or form.terms[0][0] not in self.definitions:
            return None
        is_remainder = self.limits[form.terms[0][0]] == (1 << bits) - 1
        return self.dividends.get(form.terms[0][0]) if is_remainder else None

    def less(self, one: Form, other: Form, assumed: Mapping[int, int], *, or_equal: bool) -> Form | None:
        """Return 1 where one form is less than another, else 0: the carry of an addition. None: it isn't one.

        `assumed` has the values of atoms that are decided already.
        """
        forms = [one]
        if len(one.terms) == 1 and one.terms[0][0] in self.definitions:
            forms.append(self.definitions[one.terms[0][0]])
        for form in forms:
            difference = form.plus(other, -1)
            for atom, value in assumed.items():
                difference = difference.replaced(atom, Form(constant=value))
            if (bit := self._negative(difference, or_equal)) is not None:
                return bit
        return None

    def _negative(self, form: Form, or_equal: bool) -> Form | None:
        """Return 1 where a form is negative, or zero if that counts, else 0; None: it isn't a carry."""
        if self.least(form) >= or_equal:
            return Form()
        if self.most(form) < or_equal:
            return Form(constant=1)
        for atom, factor in form.terms:
            rest = form.plus(Form(((atom, 1),)), -factor)
            if self.limits[atom] == 1 and self.least(rest) >= or_equal and self.most(rest) < -factor + or_equal:
                return Form(((atom, 1),))
        return None

    def expanded(self, form: Form) -> Form:
        """Return a form in atoms without definitions: content, carries and quotients."""
        while defined := [atom for atom, _ in form.terms if atom in self.definitions]:
            form = form.replaced(defined[-1], self.definitions[defined[-1]])
        return form

    def is_zero(self, form: Form, zeros: set[int]) -> bool:
        """Return whether a form is zero where these atoms are."""
        known = set(zeros)
        for atom in range(len(self.limits)):
            origin = self.dividends.get(atom) or self.definitions.get(atom)
            if origin and not origin.constant and known.issuperset(origin.atoms):
                known.add(atom)
        return not form.constant and known.issuperset(form.atoms)

    def zeros(self, form: Form) -> set[int]:
        """Return the atoms that are zero where a form is: each term of a sum without negative ones."""
        zeros, forms = set[int](), [form]
        while forms:
            current = forms.pop()
            rest = [(atom, factor) for atom, factor in current.terms if atom not in zeros]
            if current.constant >= 0 and all(factor > 0 for _, factor in rest):
                zeros |= {atom for atom, _ in rest}
                forms += [self.definitions[atom] for atom, _ in rest if atom in self.definitions]
                forms += [self.definitions[other] for atom, _ in rest if (other := self.remainders.get(atom)) in zeros]
        return zeros
