"""The errors in a file that somebody else made."""

from __future__ import annotations

from typing import Self

from kdyno.base.errors import UserError
from kdyno.base.text import clean, cut

SHOWN = 2000
"""Characters of one thing that is quoted: a cell may be as long as its file."""


class FileError(UserError):
    """An error of a file. A quotation from the file may hold anything, and must not steer a terminal."""

    def __init__(self, **facts: object) -> None:
        super().__init__(**{name: cut(fact, SHOWN) if isinstance(fact, str) else fact for name, fact in facts.items()})
        self.advice = clean(self.advice)
        self.args = (clean(str(self)),)

    def with_example(self, example: str) -> Self:
        """Return this error with a working command, if there is one, at the end of its hint."""
        if example:
            self.advice = clean(f"{self.advice}; for example: {example}")
        return self


class Unreadable(FileError):
    message = "can't read {file}: {why}"
    hint = "name an existing file that you may read"


class FileReadTwice(FileError):
    message = "{file} and {first} are one file: its values would count twice"
    hint = "name each file once; for several files of one variant give them one name: before=run1.csv before=run2.csv"


class EmptyFile(FileError):
    message = "{file} is empty"
    hint = "name a file with measurements in it"


class NotText(FileError):
    message = "{file} is not text: {why}"
    hint = "name a file of text; the formats are in `kdyno judge --help`, at --format"


class WrongEncoding(FileError):
    message = "{file}, line {line}: byte 0x{byte:02x} is not UTF-8"
    hint = "convert it: iconv -f latin1 -t utf-8 {file}"


class TooLarge(FileError):
    message = "{file} is too large: it has more than {most:,} {what}"
    hint = "leave out the parts that need not be compared, or judge it in parts"


class NoRows(FileError):
    message = "{file} has a header and no rows"
    hint = "name a file with measurements in it"


class AllMissing(FileError):
    message = "{file}, column {column!r}: nothing was measured, all cells are empty, NA, NaN or -"
    hint = "name the right column with --value"


class AllFailed(FileError):
    message = "{file}: all measurements failed, by the column {columns}"
    hint = "measure again; --pool {option} takes all rows as measurements, whatever their status is"


class ADirectory(Unreadable):
    message = "{file} is a directory"
    hint = "name its files; those of one variant under one NAME{example}"


class UnknownStatus(FileError):
    message = "{file}, column {column!r}: {text!r} means neither that a measurement succeeded nor that it failed"
    hint = "remove the rows that failed, and give --pool {option}, which takes all others as measurements"


class NothingButComments(FileError):
    message = "{file}: the first {size:,} bytes are blank lines and comments"
    hint = "put the names of columns at the beginning: variant,value"


class NoHeader(FileError):
    message = "{file}: the first line holds numbers, not the names of columns"
    hint = "put a line of names above it, such as variant,value; for example: {command}"


class Broken(FileError):
    """A file that starts like its format and doesn't continue like it."""

    message = "{file} can't be read as {format}: {why}"
    hint = "give its format with --format, or write the file again"


class UnknownForm(FileError):
    """JSON or XML that none of the known programs writes."""

    message = "{file} is {form}, but not in the form of {programs}"
    hint = "write it as CSV, one value a row, with the columns variant, benchmark and value{keys}"


class UnknownText(FileError):
    message = "{file}: not recognised as any of the {count} formats"
    hint = (
        "the formats are: {formats}; from another program's output make CSV with the columns variant, benchmark and "
        "value, or a file of one number a line for each variant"
    )


class Benchstat(FileError):
    message = "{file} is what benchstat prints, and the measurements are not in it"
    hint = "name the files that benchstat read, as in: kdyno judge old=old.txt new=new.txt"


class SummaryOfResults(FileError):
    message = "{file} is lmbench's summary, whose columns have no delimiter and whose names are cut"
    hint = "judge the results that it was made of: before=results/x86_64-linux-gnu/HOST.0 after=.../HOST.1"


class Intervals(FileError):
    message = "{file} has the intervals of perf stat -I: parts of one run, which are not replicates"
    hint = "measure again without -I: one file for each run, before=1.csv before=2.csv, or perf stat -r 10"


class CommaTwice(FileError):
    message = "{file}, line {line}: commas stand between the fields and in the numbers, so they can't be distinguished"
    hint = "measure again with perf stat -x';', or under LC_ALL=C"


class RaggedRow(FileError):
    message = "{file}, line {line}: fields: {fields}, in the header: {columns}"
    hint = "correct that line; text with {delimiter} in it must be quoted"


class UnalignedRow(FileError):
    message = "{file}, line {line}: columns: {fields}, in most rows: {columns}"
    hint = "put two or more blanks between columns, one blank within a name, and `-` where a cell is empty"


class SpannedCells(FileError):
    message = "{file}, line {line}: cells: {cells}, in the header of the table: {columns}"
    hint = "copy the table without cells that span several rows or columns, or write it as CSV"


class ColumnTwice(FileError):
    message = "{file}, line {line}: columns {first} and {second} are both called {column!r}"
    hint = "give them different names in that line: no option could tell them apart"


class HugeField(FileError):
    message = "{file}, line {line}: a field of {size} characters"
    hint = "close the quote there: one that is never closed looks like this"


class BadValue(FileError):
    message = "{file}, line {line}, column {column!r}: {value!r} is not a positive number"
    hint = "correct that line or leave it out: values are compared as ratios"


class BeyondLimits(FileError):
    message = "{file}, line {line}, column {column!r}: {value!r} is outside the range that can be judged, {limits}"
    hint = "give it in another unit, or leave that line out"


class EmptyCell(FileError):
    message = "{file}, line {line}, column {column!r}: the cell is empty"
    hint = "add it: every row needs a {role}"


class NoSuchColumn(FileError):
    message = "{file} has no column {column!r}"
    hint = "{nearest}its columns: {columns}"


class NoColumn(FileError):
    message = "{file}: no column looks like the {role}"
    hint = "name it with --{role}; columns: {columns}"


class NoHeading(FileError):
    message = "{file}, line {line}: a column of numbers has no name, so nothing says what was measured in it"
    hint = "write its name above it, or name the column of the measurements with --value"


class SeveralValues(FileError):
    message = "{file}: each of {columns} may be the value"
    hint = "name one with --value; several, which are then benchmarks: --value {values}"


class PercentilesInRows(FileError):
    message = "{file}: the rows are parts of one distribution, by the column {column!r}: they are not measurements"
    hint = "give one row for each run, with its mean or one percentile; --pool {option} takes all rows as measurements"


class ManyVariants(FileError):
    message = "column {column!r} has {count} different values, too many for {role}s"
    hint = "name the right column with --{role}"


class OneVariant(FileError):
    message = "there is only one variant: {name}"
    hint = "{advice}"


class NoSuchBaseline(FileError):
    message = "no variant is called {name!r}"
    hint = "{nearest}variants: {variants}"


class MixedUnits(FileError):
    message = (
        "benchmark {benchmark!r} has values in {unit!r} and in {other!r}, which can't be converted into each other"
    )
    hint = "give them different benchmark names, or one unit"


class MixedFormats(FileError):
    message = "{file} is {format}, {other} is {other_format}"
    hint = "judge files of one format at a time; give it with --format if it was recognised wrongly"


class BlockTwiceInFile(FileError):
    message = "variant {variant!r}, benchmark {benchmark!r}: {count} rows for block {block!r}"
    hint = "name the column that distinguishes them: --iteration (readings of one boot) or --boot"


class NoSize(FileError):
    message = "{file}: nothing says how many measurements {what} sums up"
    hint = "--n 12, or --n COLUMN"


class SummaryTwice(FileError):
    message = "benchmark {benchmark!r}, variant {variant!r}: several rows with a mean"
    hint = "write one row for each; name the column that distinguishes benchmarks with --benchmark"


class OnlyStatistics(FileError):
    message = "{file} has published results, and there are no data to check them against"
    hint = "name the file with the values, or with means, standard deviations and n, as well"


class NothingThere(FileError):
    message = "{file}: no measurement found in it ({format}){why}"
    hint = "such a file has {excerpt}; if it is another format, name it with --format"


class TwoMarks(FileError):
    message = "{file}: some numbers have `.` before their fractions and some have `,`"
    hint = "give it with --decimal . or --decimal , ; the other one then separates thousands"


class MaybeWide(FileError):
    message = "{file}, line {line}: are {columns} variants, one a column?"
    hint = "if they are variants: --wide; if they are benchmarks: --value {values}"


class RunsInColumns(FileError):
    message = "{file}, line {line}: the columns {columns} look like runs of one measurement"
    hint = (
        "give --format csv, which takes them all as values; if they are benchmarks: --value {values}; variants: --wide"
    )


class MaybeRows(FileError):
    message = "{file}, line {line}: are the rows of {column!r} variants, or benchmarks?"
    hint = (
        "if they are variants: --variant {option}; if they are benchmarks, and each file is a variant: "
        "--benchmark {option}"
    )


class NotAMeasurement(FileError):
    message = "{file}, line {line}: no measurement in it: columns that are made of other numbers, or count: {columns}"
    hint = "name a column that was measured with --value: ratios, changes, minima, maxima and ranks aren't judged"


class Normalised(FileError):
    message = "{file}, line {line}: every number of {column!r} is {number}: the others are ratios to it"
    hint = "judge the measurements that the ratios were made of; --wide takes the ratios as measurements"


class NoClaim(FileError):
    message = "{file}, line {line}: {why}"
    hint = (
        "a published statistic needs the columns pair (`a vs b`), Q and p, a published mean those of mean, sd and n, "
        "and both benchmark if there are several"
    )


class UndecidedColumn(FileError):
    message = "column {column!r} has {count} values ({levels}) within variant {variant!r} of {benchmark!r}"
    hint = "choose: {option} {does}, {pool} takes them all together"


class TablesAlike(FileError):
    message = "{file}: the tables in lines {first} and {second} both have {benchmark!r} of {variant!r}"
    hint = "give the rows of each table their own names, or judge the tables in files of their own"


class RunsInRows(FileError):
    message = "{file}, line {line}: the rows of {column!r} look like runs of one measurement"
    hint = (
        "leave out the rows that aren't runs, such as averages, and give --wide; if they are benchmarks: "
        "--benchmark {option}"
    )


class SummaryColumn(FileError):
    message = "benchmark {benchmark!r}, variant {variant!r}: several rows with a mean, which differ in {column!r}"
    hint = "give --benchmark {columns} to compare each of its values separately"


class TwoMeanings(FileError):
    message = "{file}: column {column!r} is named twice, by --{option} and by --{other}"
    hint = "a column has one meaning: leave one of the two out"
