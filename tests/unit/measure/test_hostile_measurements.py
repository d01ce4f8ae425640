"""`kdyno judge` on files that were made to hang it, to fill the memory, or to break it."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from kdyno.base.errors import KdynoError
from kdyno.cli.main import main
from kdyno.judge.foreign import programs
from kdyno.judge.foreign.check import check_claims
from kdyno.judge.verdicts import of_files
from kdyno.judge.verdicts.model import FileReport, to_json
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.measure.readers import errors, markup, roles, source, units
from kdyno.measure.readers.claims import Claim
from kdyno.measure.readers.formats import csv_rows
from kdyno.measure.readers.formats.registry import BY_NAME, recognise
from kdyno.measure.readers.readings import PublishedValue
from kdyno.measure.readers.request import JudgeRequest
from kdyno.report.terminal import render
from tests.unit.bounded import kdyno, require_one_message
from tests.unit.growth import repeated, too_steep

HUGE = "9" * 5000
"""More digits than Python turns into an int."""


def judged(directory: Path, *texts: str | bytes, **options: object) -> FileReport:
    files = []
    for number, text in enumerate(texts):
        file = directory / f"data{number}"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        files.append(str(file))
    return judge_files(files, JudgeRequest(**options))  # type: ignore[arg-type]


def refused(directory: Path, error: type[KdynoError], says: str, *texts: str | bytes, **options: object) -> None:
    with pytest.raises(error) as caught:
        judged(directory, *texts, **options)
    assert says in str(caught.value)
    assert caught.value.advice


@pytest.mark.parametrize(
    ("prefix", "unit", "tail"),
    [
        ("variant,value (", " ", "x\na,1\nb,2\n"),
        ("variant,value ", "(", "\na,1\nb,2\n"),
        ("variant,value ", "( ", ")\na,1\nb,2\n"),
        ("variant,value", " ", "x\na,1\nb,2\n"),
        ("variant,value", " /", "x\na,1\nb,2\n"),
        ("variant,value", "_", "x\na,1\nb,2\n"),
        ("a | b\n--", " ", "x|\n1 | 2\n"),
        ("a | b\n", " ", "--|x\n1 | 2\n"),
        ("a | b\n", "|--", "x\n1 | 2\n"),
        ("a | b\n|", ":", "\n1 | 2\n"),
        ("test,a,b\nx,", "1", " (,2 (3)\n"),
        ("test,a,b\nx,", "1,", "(\n"),
        ("test,a,b\nx,1 (", " ", "x,2 (3)\n"),
        ("test,a,b\nx,", ":", "1 (2),2 (3)\n"),
        ("| test | a | b |\n|--|--|--|\n| x | ", "1", " ( | 2 (3) |\n"),
        ("| test | a | b |\n|--|--|--|\n| x | 1 (", " ", "x | 2 (3) |\n"),
        ("machine,pair,Q,p\nx,a", " ", "b,9.6,0.8\n"),
        ("machine,pair,Q,p\nx,a", " and", " b,9.6,0.8\n"),
        ("variant,value,unit\na,1,", " ", "/s x\nb,2,us\n"),
        ("1.79,msec,task-clock,1791568,100.00,,\nS", "1", "\n"),
        ("1.79,msec,task-clock,1791568,100.00,,\n1,,a", ",1", "x\n"),
        ("Simple syscall: 0.13 microseconds\n", "1 ", "x\n"),
        ("Simple syscall: 0.13 microseconds\n", "x: 1", " usec\n"),
        ("stress-ng: metrc: [1] ", "1 ", "x\n"),
        ("stress-ng: ", " ", "x\n"),
        ('{"results":[{"command":"a","times":[', "1,", "1]}]}"),
        ("", "[", ""),
        ("", '{"a":', ""),
        ('variant,value\n"', "a,1\n", ""),
        ("", '"', "\n1,2\n"),
        ("", "\n", "variant,value\na,1\n"),
        ("", "#", "\n"),
    ],
)
@pytest.mark.parametrize("form", [None, "csv", "table", "perf", "lmbench", "stress-ng", "hyperfine"])
def test_no_line_takes_longer_than_in_proportion_to_its_length(
    prefix: str, unit: str, tail: str, form: str | None
) -> None:
    request = JudgeRequest(format=form, unit="ms")

    def read(text: str) -> None:
        file = source.FileSource("data", "data", text.encode())
        with suppress(KdynoError):
            reader = BY_NAME[form] if form else recognise(file, request)
            of_files.gather([file], reader, request)

    assert not too_steep(read, repeated(prefix, unit, tail))


@pytest.mark.parametrize(
    "work", [units.unit_of_column, units.find, units.format_unit, roles.fold_name, markup.has_markup_table]
)
@pytest.mark.parametrize("unit", ["(", "( ", "[)", ")", " ", "_", "/ ", "per ", " p", "s", "|--", "|\n--", "--"])
def test_names_of_columns_are_looked_at_in_time_in_proportion_to_them(work: Callable[[str], object], unit: str) -> None:
    for prefix, tail in (("", ""), ("value (", ""), ("value (", "x"), ("", ")"), ("a|b\n", "|")):
        assert not too_steep(work, repeated(prefix, unit, tail), 1 << 14)


def test_units_and_names_are_found_as_before() -> None:
    assert [
        units.unit_of_column(name)
        for name in ("a (b) (ms)", "rate [KB / sec]", "a (us) b", "x ()", ")", "(ns", "t\tms")
    ] == [
        *("ms", "KB/s", "", "", "", "", "ms"),
    ]
    assert [roles.fold_name(name) for name in ("Time (wall) (ms)", "(a)", "time_ms", "ms)", "Time [s] ")] == [
        *("time", "", "time", "ms", "time"),
    ]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (",".join(f"c{n}" for n in range(1001)) + "\n1\n", errors.TooLarge, "it has more than 1,000 columns"),
        ("|".join(f"c{n}" for n in range(1001)) + "\n--|--\n1\n", errors.TooLarge, "it has more than 1,000 columns"),
        ("x" * 1001 + ",value\na,1\n", errors.HugeField, "line 1: a field of 1001 characters"),
        ("x," * 500 + "x" * 66_000, errors.TooLarge, "more than 65,536 bytes in its first line"),
        ("\n" * 66_000 + "variant,value\na,1\n", errors.NothingButComments, "the first 65,536 bytes are blank lines"),
        ("# no table\n" * 6_000 + "variant,value\na,1\n", errors.NothingButComments, "blank lines and comments"),
        ("# no table\n\n", errors.NothingButComments, "the first 12 bytes are blank lines and comments"),
        ("a | b\n--|--\n" + "1 | 2\n" * 10_001, errors.TooLarge, "more than 10,000 rows for tables of means"),
        ("kernel,mean,sd,n\n" + "a,1,1,1\n" * 10_001, errors.TooLarge, "more than 10,000 rows for a table of means"),
        ("variant,value\na,1\n" + "b,2\n" * 20_000 + "\0", errors.NotText, "it has zero bytes"),
        ("kernel,mean,sd,n\na,1,1," + HUGE[:900] + "\n", errors.NoSize, "nothing says how many measurements a sums up"),
        ("kernel,mean,sd,n\na,1,1,1000000000\n", errors.BadValue, "column 'n': '1000000000'"),
        ("kernel,mean,sd,n\na,1e61,1,5\nb,1,1,5\n", errors.BeyondLimits, "column 'mean': '1e61' is outside"),
        ("variant,value\na,1e61\nb,1\n", errors.BeyondLimits, "column 'value': '1e61' is outside"),
    ],
)
def test_what_is_too_large_or_nothing_is_said_in_one_message(
    tmp_path: Path, text: str, error: type[KdynoError], says: str
) -> None:
    refused(tmp_path, error, says, text)


def test_no_more_is_taken_in_than_anybody_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [{"command": f"c{number}", "times": [1.0, 2.0]} for number in range(201)]
    refused(tmp_path, errors.TooLarge, "more than 200 variants", json.dumps({"results": commands}))
    long = [{"command": "x" * 4001, "times": [1.0]}, {"command": "b", "times": [1.0]}]
    refused(tmp_path, errors.TooLarge, "more than 4,000 characters in a name", json.dumps({"results": long}))
    lines = "".join(f"Simple thing{number}: 0.5 microseconds\n" for number in range(2001))
    refused(tmp_path, errors.TooLarge, "2,000 benchmarks", "Simple read: 1 usecs\n" + lines, lines, format="lmbench")
    rows = "".join(f"v{variant},b{benchmark},1\n" for variant in range(50) for benchmark in range(41))
    refused(tmp_path, errors.TooLarge, "more than 50,000 pairs of variants", "variant,benchmark,value\n" + rows)
    monkeypatch.setattr(csv_rows, "MOST_ROWS", 4)
    refused(tmp_path, errors.TooLarge, "more than 4 rows", "variant,value\na,1\nb,2\na,1\nb,2\na,3\n")
    monkeypatch.setattr(source, "MOST_TEXT", 20)
    refused(tmp_path, errors.TooLarge, "more than 20 bytes", "Simple read: 1 usecs\n" * 2)
    assert judged(tmp_path, "variant,value\na,1\nb,2\n").variants == ("a", "b")


def test_a_program_that_complains_of_everything_is_not_quoted_without_end(tmp_path: Path) -> None:
    lost = "".join(f"<not counted>,,event{number},0,0.00,,\n" for number in range(300))
    texts = [f"{value},,cycles,1000,100.00,,\n{value + 1},,cycles,1000,100.00,,\n{lost}" for value in (10, 20)]
    report = judged(tmp_path, *texts)
    assert len(report.notices) < programs.MOST_NOTES + 20
    assert "250 more such notes" in report.notices


MEANS = "machine,kernel,mean,sd,n\n" + "".join(f"x,v{number},{10 + number},1,12\n" for number in range(51))


@pytest.mark.parametrize(
    ("means", "published", "error", "says"),
    [
        (MEANS, "x,v1 vs v2,1,\n" * 1001, errors.TooLarge, "more than 1,000 published statistics"),
        (MEANS, "x,v1 vs v2,1,\n", errors.TooLarge, "more than 50 variants of x"),
        ("machine,kernel,mean,sd,n\nx,a,1,1,1\nx,b,2,1,1\n", "x,a vs b,1,\n", errors.NoClaim, "one value each"),
        ("machine,kernel,mean,sd,n\nx,a,1,1,5\nx,b,2,1,5\n", "x,a vs b,1e400,\n", errors.NoClaim, "not a number"),
        ("machine,kernel,mean,sd,n\nx,a,1,1,5\nx,b,2,1,5\n", f"x,a vs b,1,1e{HUGE}\n", errors.HugeField, "a field"),
        ("machine,kernel,mean,sd,n\nx,a,1,1,5\nx,b,2,1,5\n", "x,a vs b,nan,\n", errors.NoClaim, "not a number"),
    ],
)
def test_statistics_that_can_t_be_checked_are_refused(
    tmp_path: Path, means: str, published: str, error: type[KdynoError], says: str
) -> None:
    refused(tmp_path, error, says, means, "machine,pair,Q,p\n" + published)


def test_a_wrong_q_is_searched_for_among_no_more_pairs_than_take_seconds() -> None:
    def notice_text(machines: int) -> str:
        published = [
            PublishedValue(f"m{machine}", f"v{v}", "", str(10 + v * (machine + 1)), "1", 12, "s", "")
            for machine in range(machines)
            for v in range(10)
        ]
        return check_claims([Claim("f", 2, "m0", "v0", "v1", "300.0", "")], published)[0]

    assert "this Q would fit" in notice_text(30)
    assert "this Q would fit" not in notice_text(60)


HYPERFINE = '{{"results":[{{"command":"a","times":[1.0,2.0,1.5]}},{{"command":{command},"times":[{times}]{more}}}]}}'


def hyperfine(command: str = '"b"', times: str = "1.0,2.0", more: str = "") -> str:
    return HYPERFINE.format(command=command, times=times, more=more)


@pytest.mark.parametrize(
    ("text", "form", "says"),
    [
        ("[" * 1_000_000, "hyperfine", "nested too deeply"),
        ('{"results":' * 100_000, "pyperf", "nested too deeply"),
        (hyperfine(command="[" * 900 + "]" * 900), "hyperfine", "command is not a text"),
        (hyperfine(command="5"), "hyperfine", "command is not a text"),
        (hyperfine(times='"1"'), "hyperfine", "times has an item that is not a number"),
        (hyperfine(times="true"), "hyperfine", "times has an item that is not a number"),
        (hyperfine(times="[1.0]"), "hyperfine", "times has an item that is not a number"),
        (hyperfine(more=',"exit_codes":[0]'), "hyperfine", "2 times and 1 exit_codes"),
        (hyperfine(more=',"exit_codes":5'), "hyperfine", "exit_codes is not a list"),
        ('{"results":5}', "hyperfine", "results is not a list"),
        ('{"results":[5]}', "hyperfine", "a result is not an object"),
        ("5", "hyperfine", "no measurement found"),
        ("null", "pyperf", "the document is not an object"),
        ('{"benchmarks":{}}', "pyperf", "benchmarks is not a list"),
        ('{"benchmarks":[{"runs":[{"values":{"a":1}}]}]}', "pyperf", "values is not a list"),
        ('{"benchmarks":[{"runs":[[]]}]}', "pyperf", "a run is not an object"),
        ('{"metadata":[],"runs":[]}', "pyperf", "metadata is not an object"),
        ('{"metadata":{"name":["x"]},"runs":[]}', "pyperf", "name is not a text"),
        ('{"a":1', "pyperf", "invalid JSON from line 1"),
        ("", "pyperf", "is empty"),
        ("\ufeff", "hyperfine", "is empty"),
    ],
)
def test_a_document_that_isn_t_what_it_should_be_is_said_to_be_broken(
    tmp_path: Path, text: str, form: str, says: str
) -> None:
    refused(tmp_path, KdynoError, says, text, format=form)
    if form == "hyperfine" and text.startswith('{"results":[{"command":"a"'):
        refused(tmp_path, KdynoError, says, text)


@pytest.mark.parametrize(
    "number", [HUGE, "-" + HUGE, "1" * 400, "1e400", "NaN", "Infinity", "-Infinity", "0", "1e61", "1e-61"]
)
def test_a_number_that_can_t_be_compared_leaves_its_benchmark_out(tmp_path: Path, number: str) -> None:
    text = hyperfine(times=f"1.0,{number}")
    refused(tmp_path, errors.OneVariant, "only one variant: a", text)
    pyperf = f'{{"benchmarks":[{{"metadata":{{"name":"x"}},"runs":[{{"values":[{number}]}}]}}]}}'
    refused(tmp_path, errors.NothingThere, "no measurement found", pyperf)


@pytest.mark.parametrize("number", ["1", "12345678901234567890", "1.5e3", "0.1"])
def test_numbers_are_read_as_they_are(tmp_path: Path, number: str) -> None:
    [_, value] = [value.value for value in judged(tmp_path, hyperfine(times=number)).values if value.variant == "a"][:2]
    assert value == 2.0
    assert [value.value for value in judged(tmp_path, hyperfine(times=number)).values if value.variant == "b"] == [
        float(number)
    ]


@pytest.mark.parametrize(
    "name", [r'"\ud800"', r'"a\udfff b"', r'"\u0000"', r'"\u001b[31mred"', r'"\u202eevil"', '"a\\nb"']
)
def test_every_name_that_json_can_spell_can_be_shown(tmp_path: Path, name: str) -> None:
    report = judged(tmp_path, hyperfine(command=name))
    assert json.loads(to_json(report))["variants"][1] == report.variants[1]
    shown = io.StringIO()
    render(report, Console(file=shown, width=100))
    assert not set(shown.getvalue()) & {"\x1b", "\0", "\u202e", "\ud800"}
    shown.getvalue().encode()


def test_whatever_n_is_said_to_be_there_is_no_traceback(tmp_path: Path) -> None:
    table = "kernel,mean,sd\na,1,1\nb,2,1\n"
    for n in (HUGE, "0", "-1", "1e3", "²", "1000000000"):
        refused(tmp_path, KdynoError, "", table, n=n)
    event = "10,,cycles,1.00%,1000,100.00,,\n"
    refused(tmp_path, errors.NoSize, "how many measurements", event, event, format="perf", n=HUGE)
    assert len(judged(tmp_path, table, n="999999999").comparisons) == 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 1 << 20)


CSV = b"variant,value\na,1\nb,2\n"


@pytest.fixture
def pipe() -> Iterator[Callable[[bytes, bool], str]]:
    """Makes a pipe with something in it, which has a name as those of a shell's `<(...)` have."""
    ends: list[int] = []

    def filled(content: bytes, whole: bool) -> str:
        reader, writer = os.pipe()
        ends.append(reader)
        if whole:
            os.write(writer, content)
            os.close(writer)
        else:

            def write() -> None:
                with suppress(BrokenPipeError), os.fdopen(writer, "wb") as file:
                    file.write(content)

            threading.Thread(target=write, daemon=True).start()
        return f"/dev/fd/{reader}"

    yield filled
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("whole", [True, False])
def test_a_pipe_is_read_to_its_end(pipe: Callable[[bytes, bool], str], whole: bool) -> None:
    assert judge_files([pipe(CSV, whole)], JudgeRequest()).variants == ("a", "b")


def test_two_pipes_are_two_variants(pipe: Callable[[bytes, bool], str]) -> None:
    times = b"time\n1.5\n1.6\n"
    names = [f"{name}={pipe(times, True)}" for name in ("old", "new")]
    assert judge_files(names, JudgeRequest()).variants == ("old", "new")


@pytest.mark.usefixtures("small")
def test_a_pipe_that_gives_more_and_more_is_left_at_the_limit(pipe: Callable[[bytes, bool], str]) -> None:
    with pytest.raises(errors.TooLarge, match="more than 1,048,576 bytes"):
        judge_files([pipe(CSV + b"b,2\n" * (1 << 19), False)], JudgeRequest())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_an_endless_device_is_left_at_the_limit(device: str) -> None:
    with pytest.raises(errors.TooLarge, match=f"{device} is too large: it has more than 1,048,576 bytes"):
        judge_files([device], JudgeRequest())


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda _: None])
def test_what_has_no_measurements_in_it_is_refused_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    path = tmp_path / "it"
    make(path)
    with pytest.raises((errors.EmptyFile, errors.Unreadable)):
        judge_files([str(path)], JudgeRequest())
    with pytest.raises(errors.EmptyFile):
        judge_files(["/dev/null"], JudgeRequest())


def test_a_named_pipe_with_a_writer_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    keeping = os.open(path, os.O_RDWR)

    def write() -> None:
        os.write(keeping, CSV)
        os.close(keeping)

    threading.Timer(0.05, write).start()
    assert judge_files([str(path)], JudgeRequest()).variants == ("a", "b")


def test_standard_input_is_a_file_too(pipe: Callable[[bytes, bool], str], capsys: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(0)
    replaced = os.open(pipe(CSV, True), os.O_RDONLY)
    os.dup2(replaced, 0)
    try:
        assert main(["judge", "-", "--json"]) == 0
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(replaced)
    assert json.loads(capsys.readouterr().out)["variants"] == ["a", "b"]


def test_wrong_bytes_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK", 5)
    text = "variant,value\n\u20ac\U0001f600,1\n".encode()
    source.FileSource("f", "f", text * 3).require_text()
    for data in (*(text + text[:cut] for cut in range(1, 22)), text + b"abc\xff" + text, text + b"\xed\xa0\x80"):
        file = source.FileSource("f", "f", data)
        try:
            data.decode()
            file.require_text()
        except UnicodeDecodeError as error:
            line, byte = data[: error.start].count(b"\n") + 1, data[error.start]
            with pytest.raises(errors.WrongEncoding, match=f"f, line {line}: byte 0x{byte:02x} is not UTF-8"):
                file.require_text()


ROW = '{"a": [' + "[]," * 20_000_000 + "[]]}"
NEST = '{"a":' + '{"a":[' * 5_000_000


@pytest.mark.parametrize(
    ("text", "form"), [(ROW, "hyperfine"), (ROW, "iperf3"), (NEST, "perf")], ids=["document", "documents", "line"]
)
def test_json_of_sixty_megabytes_is_refused_within_a_gigabyte(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "a").write_text(text)
    done = kdyno("judge", tmp_path / "a", "--format", form, "--state", tmp_path / "state")
    require_one_message(done, 1, "it may hold more than 2,000,000 values")
