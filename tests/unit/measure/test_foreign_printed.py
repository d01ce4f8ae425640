"""Outputs as programs print them for people: perf stat, iperf 2, netperf -k, ministat, load generators."""

from __future__ import annotations

import json

import pytest

from kdyno.measure.readers.errors import Benchstat, Intervals
from kdyno.measure.readers.formats.registry import recognise
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource
from tests.unit.measure.test_foreign_outputs import only, output, values

PERF_PRINTED = """\

 Performance counter stats for './pipe-bench' (10 runs):

          1,791.57 msec task-clock                       #    0.998 CPUs utilized               ( +-  0.12% )
                 0      cpu-migrations                   #    0.000 /sec
     5,671,901,234      cycles                           #    3.167 GHz                         ( +-  0.15% )  (83.31%)
   <not supported>      stalled-cycles-frontend
     7,654,321,098      branch-misses                    #    0.50% of all branches             ( +-  0.00% )

           1.7941 +- 0.0021 seconds time elapsed  ( +-  0.12% )
"""


def test_what_perf_stat_prints_for_people_is_read_with_its_errors_and_runs() -> None:
    result = output(PERF_PRINTED)
    assert [(one.benchmark, one.values, one.unit, one.error, one.n) for one in result.series] == [
        ("task-clock", (1791.57,), "ms", 0.0012, 10),
        ("cycles", (5671901234.0,), "", 0.0015, 10),
        ("branch-misses", (7654321098.0,), "", 0.00005, 10),
        ("elapsed", (1.7941,), "s", 0.0012, 10),
    ]
    assert result.notes == (
        "cycles was counted 83.31 % of the time and scaled up (multiplexing)",
        "stalled-cycles-frontend was not supported: left out",
        "cpu-migrations is 0, and ratios need positive numbers: left out",
    )


@pytest.mark.parametrize(
    ("thousands", "point"), [(",", "."), (".", ","), ("\u202f", ","), ("\u00a0", ","), ("'", "."), ("", ".")]
)
def test_perf_stat_prints_numbers_as_the_locale_has_them(thousands: str, point: str) -> None:
    printed = PERF_PRINTED.translate({ord(","): thousands, ord("."): point})
    assert values(output(printed)) == values(output(PERF_PRINTED))


def test_several_commands_of_perf_stat_in_one_file_are_told_apart() -> None:
    again = PERF_PRINTED.replace("./pipe-bench", "./other")
    assert {one.command for one in output(PERF_PRINTED + again).series} == {"./pipe-bench", "./other"}
    twice = values(output(PERF_PRINTED * 2))
    assert twice["elapsed"] == ((1.7941, 1.7941), "s")


def test_intervals_of_perf_stat_are_parts_of_one_run() -> None:
    with pytest.raises(Intervals):
        output("#           time             counts unit events\n     1.000105  1,000.24 msec cpu-clock  # 1.0 CPUs\n")


@pytest.mark.parametrize(
    "text",
    [
        "goos: linux\n    │ old.txt │  new.txt  │\n    │ sec/op  │ sec/op  vs base  │\nA-8  4.6µ ± 1%  4.5µ ± 2%\n",
        "name    old time/op    new time/op    delta\nA-8   4.61µs ± 1%  4.52µs ± 2%  -1.97%  (p=0.002 n=10+9)\n",
    ],
)
def test_benchstat_s_summaries_are_refused_with_the_files_that_it_read(text: str) -> None:
    with pytest.raises(Benchstat) as caught:
        recognise(FileSource("a.txt", "a", text.encode()), JudgeRequest())
    assert "old.txt" in caught.value.advice


def test_ministat_s_rows_are_the_files_that_it_compared() -> None:
    printed = """\
x baseline.txt
+ patched.txt
    N           Min           Max        Median           Avg        Stddev
x  10         6.121         6.242         6.183        6.1806        0.0361
+   9         5.912         6.014         5.961        5.9630        0.0312
Difference at 95.0% confidence
\t-0.2176 +/- 0.0319
"""
    series = output(printed).series
    assert [(one.variant, one.values, one.n) for one in series] == [
        ("baseline.txt", (6.1806,), 10),
        ("patched.txt", (5.963,), 9),
    ]
    assert [one.sd for one in series] == [0.0361 / 6.1806, 0.0312 / 5.963]


IPERF_HEAD = "Client connecting to 10.0.0.2, TCP port 5001\nTCP window size: 85.0 KByte (default)\n"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["[  3]  0.0- 1.0 sec  1.1 GBytes  9.31 Gbits/sec", "[  3]  0.0-10.0 sec  11.2 GBytes  9.62 Gbits/sec"], 9.62),
        (
            [
                "[  3]  0.0-10.0 sec  5.6 GBytes  4.81 Gbits/sec",
                "[  4]  0.0-10.0 sec  5.6 GBytes  4.80 Gbits/sec",
                "[SUM]  0.0- 1.0 sec  1.1 GBytes  9.31 Gbits/sec",
                "[SUM]  0.0-10.0 sec  11.2 GBytes  9.61 Gbits/sec",
            ],
            9.61,
        ),
        (
            [
                "[  3] 0.0000-10.0001 sec  1.25 MBytes  1.05 Gbits/sec",
                "[  3] Server Report:",
                "[  3] 0.0000-10.0001 sec  1.20 MBytes  1.01 Gbits/sec   0.011 ms    0/  893 (0%)",
            ],
            1.01,
        ),
    ],
    ids=["intervals", "streams", "datagrams"],
)
def test_iperf_2_is_the_rate_of_its_whole_time_of_all_streams_and_as_received(rows: list[str], expected: float) -> None:
    series = only(output(IPERF_HEAD + "\n".join(rows) + "\n"))
    assert (series.values, series.unit, series.direction) == ((expected,), "Gb/s", "higher")


def test_netperf_s_keys_are_read_as_its_rows_are() -> None:
    head = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET : demo\n"
    keys = "THROUGHPUT={}\nTHROUGHPUT_UNITS=10^6bits/s\nELAPSED_TIME=10.00\n"
    series = only(output(head + keys.format("41233.61") + head + keys.format("41231.30")))
    assert (series.benchmark, series.values, series.unit) == ("netperf TCP STREAM", (41233.61, 41231.3), "Mb/s")
    omni = "PROTOCOL=TCP\nDIRECTION=Send|Recv\nTHROUGHPUT=61231.2\nTHROUGHPUT_UNITS=Trans/s\n"
    assert values(output(omni * 2)) == {"netperf TCP Send|Recv": ((61231.2, 61231.2), "transactions/s")}


def test_hyperfine_s_json_without_times_has_its_means() -> None:
    result = {"command": "make", "mean": 1.25, "stddev": 0.0125, "median": 1.23, "user": 1.0}
    series = only(output(json.dumps({"results": [result]})))
    assert (series.values, series.sd, series.n) == ((1.25,), 0.01, None)
    assert only(output(json.dumps({"results": [result | {"stddev": None}]}))).sd is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\nSummary:\n  Total:\t2.0012 secs\n  Requests/sec:\t1998.41\n", {"hey": ((1998.41,), "requests/s")}),
        (
            "Summary:\n  Success rate:\t100.00%\n  Total:\t10.0 sec\n  Requests/sec:\t41234.5\n",
            {"oha": ((41234.5,), "requests/s")},
        ),
        ("starting benchmark...\nfinished in 1.02s, 9803.92 req/s, 5MB/s\n", {"h2load": ((9803.92,), "requests/s")}),
        (
            "     http_req_duration..............: avg=117.55ms min=100ms med=115ms max=250ms p(90)=130ms p(95)=140ms\n"
            "       { expected_response:true }...: avg=117.55ms min=100ms med=115ms max=250ms p(90)=130ms p(95)=140ms\n"
            "     http_req_failed................: 0.00%  0 out of 1000\n"
            "     http_reqs......................: 1000   33.214/s\n     iterations: 500   16.607/s\n",
            {
                "k6": ((33.214,), "requests/s"),
                "k6 iterations": ((16.607,), "iterations/s"),
                "k6 mean latency": ((117.55,), "ms"),
            },
        ),
        (
            "Requests      [total, rate, throughput]         1200, 120.00, 65.87\n"
            "Latencies     [min, mean, 50, 90, 95, 99, max]  90.438129ms, 113.172398ms, 108.2ms, 140.1ms, 247ms, 1ms\n",
            {"vegeta": ((65.87,), "requests/s"), "vegeta mean latency": ((113.172398,), "ms")},
        ),
        (
            "[OVERALL], RunTime(ms), 10110\n[OVERALL], Throughput(ops/sec), 1.2E4\n"
            "[READ], Operations, 491\n[READ], AverageLatency(us), 1054.4\n[READ], 99thPercentileLatency(us), 1304\n",
            {"ycsb throughput": ((12000.0,), "ops/s"), "ycsb READ": ((1054.4,), "us")},
        ),
        (
            "60.123: IO Summary: 1234567 ops 20574.123 ops/s 1870/3741 rd/wr 482.1mb/s 0.1ms/op\n",
            {"filebench": ((20574.123,), "ops/s")},
        ),
        (
            "--- /dev/sda (block device 931.5 GiB) ioping statistics ---\n"
            "min/avg/max/mdev = 95.7 us / 127.6 us / 161.1 us / 22.9 us\n",
            {"ioping mean latency, /dev/sda": ((127.6,), "us")},
        ),
        (
            "PING a (10.0.0.1) 56(84) bytes of data.\n--- a ping statistics ---\n"
            "rtt min/avg/max/mdev = 0.031/0.042/0.058/0.008 ms\n",
            {"ping mean round trip, a": ((0.042,), "ms")},
        ),
        (
            "Startup finished in 2.1s (loader) + 1.532s (kernel) + 812ms (initrd) + 4.221s (userspace) = 8.665s\n"
            "Startup finished in 2.1s (loader) + 1.540s (kernel) + 1min 2.5s (userspace) = 1min 6.1s\n",
            {
                "systemd-analyze kernel": ((1.532, 1.54), "s"),
                "systemd-analyze initrd": ((812.0,), "ms"),
                "systemd-analyze userspace": ((4.221, 62.5), "s"),
            },
        ),
        (
            "/dev/sda:\n Timing cached reads:   24958 MB in  1.99 seconds = 12544.61 MB/sec\n"
            " Timing O_DIRECT disk reads: 1516 MB in  3.00 seconds = 505.05 MB/sec\n",
            {
                "hdparm cached reads, /dev/sda": ((12544.61,), "MB/s"),
                "hdparm O_DIRECT disk reads, /dev/sda": ((505.05,), "MB/s"),
            },
        ),
        (
            "PBKDF2-sha256    4185932 iterations per second for 256-bit key\n"
            "argon2i       9 iterations, 1048576 memory, 4 parallel threads (CPUs) for 256-bit key\n"
            "#     Algorithm |       Key |      Encryption |      Decryption\n"
            "        aes-cbc        128b      1134.0 MiB/s      3651.1 MiB/s\n"
            "    serpent-cbc        128b               N/A               N/A\n",
            {
                "cryptsetup PBKDF2-sha256": ((4185932.0,), "iterations/s"),
                "cryptsetup aes-cbc 128b encryption": ((1134.0,), "MiB/s"),
                "cryptsetup aes-cbc 128b decryption": ((3651.1,), "MiB/s"),
            },
        ),
        (
            "0\tMethod: MEMCPY\tElapsed: 0.03456\tMiB: 256.00000\tCopy: 7407.407 MiB/s\n"
            "AVG\tMethod: MEMCPY\tElapsed: 0.03456\tMiB: 256.00000\tCopy: 7407.407 MiB/s\n",
            {"mbw MEMCPY": ((7407.407,), "MiB/s")},
        ),
        (
            "Loading silesia.tar...       \r |-silesia.tar       : 211957760 ->  73422932 (x2.887),  510.0 MB/s \r"
            " |-silesia.tar       : 211957760 ->  73422932 (x2.887),  514.2 MB/s, 1612.4 MB/s\r 1#\n"
            "-5#a b.tar           : 211957760 ->  73422932 (2.887), 914.2 MB/s ,2612.4 MB/s \n",
            {
                "zstd 1#silesia.tar compression": ((514.2,), "MB/s"),
                "zstd 1#silesia.tar decompression": ((1612.4,), "MB/s"),
                "zstd -5#a b.tar compression": ((914.2,), "MB/s"),
                "zstd -5#a b.tar decompression": ((2612.4,), "MB/s"),
            },
        ),
        (
            "Doing sha256 for 3s on 16 size blocks: 15345321 sha256's in 2.99s\n"
            "The 'numbers' are in 1000s of bytes per second processed.\n"
            "type             16 bytes     64 bytes    256 bytes   1024 bytes   8192 bytes  16384 bytes\n"
            "aes-256 cbc      82114.77k   207661.03k   420000.12k   541231.10k   590123.01k   594412.54k\n",
            {
                "openssl aes-256 cbc 16 bytes": ((82114.77,), "kB/s"),
                "openssl aes-256 cbc 64 bytes": ((207661.03,), "kB/s"),
                "openssl aes-256 cbc 256 bytes": ((420000.12,), "kB/s"),
                "openssl aes-256 cbc 1024 bytes": ((541231.1,), "kB/s"),
                "openssl aes-256 cbc 8192 bytes": ((590123.01,), "kB/s"),
                "openssl aes-256 cbc 16384 bytes": ((594412.54,), "kB/s"),
            },
        ),
        (
            "tinymembench v0.4.9 (simple benchmark for memory throughput and latency)\n"
            " C copy backwards (32 byte blocks)                    :   9200.5 MB/s (0.4%)\n"
            " standard memcpy                                      :  13225.6 MB/s (2.1%)\n"
            "block size : single random read / dual random read\n      1024 :    0.0 ns          /     0.0 ns\n",
            {
                "tinymembench C copy backwards (32 byte blocks)": ((9200.5,), "MB/s"),
                "tinymembench standard memcpy": ((13225.6,), "MB/s"),
            },
        ),
        (
            "stress-ng cpu-cache-mem: 14.51\ny-cruncher pi 1b: 0.01\nperf sched msg fork thread: 4.46\n"
            "schbench p99 latency (us): 3412\nschbench avg rps: 1812.5\ncyclictest max latency (us): 87\n"
            "\nTotal time (s): 18.98\nTotal score: 30.43\n\nMode: mini\n\nDate: 2026-11-02-1000\n"
            "\nSystem:    Kernel: 6.18.0 arch: x86_64 bits: 64\n",
            {
                "mini-benchmarker stress-ng cpu-cache-mem": ((14.51,), "s"),
                "mini-benchmarker perf sched msg fork thread": ((4.46,), "s"),
                "mini-benchmarker schbench p99 latency": ((3412.0,), "us"),
                "mini-benchmarker cyclictest max latency": ((87.0,), "us"),
                "mini-benchmarker schbench avg": ((1812.5,), "requests/s"),
            },
        ),
        (
            "General statistics:\n    total time:                          10.0s\n"
            "    total number of events:              9537\n",
            {"sysbench": ((953.7,), "events/s")},
        ),
    ],
    ids=[
        *("hey", "oha", "h2load", "k6", "vegeta", "ycsb", "filebench", "ioping", "ping"),
        *("systemd-analyze", "hdparm", "cryptsetup", "mbw", "zstd", "openssl", "tinymembench"),
        "mini-benchmarker",
        "sysbench-without-its-head",
    ],
)
def test_lines_of_programs_with_their_numbers_are_read(
    text: str, expected: dict[str, tuple[tuple[float, ...], str]]
) -> None:
    assert values(output(text)) == expected
