"""The programs that print a measurement a line: the patterns of their lines."""

from __future__ import annotations

import re

from kdyno.measure.readers.formats.printed import PrintedProgram, printed_line

_PER_SECOND = r"(?:/sec|/s| per sec(?:ond)?)"
_OPENSSL = ("16", "64", "256", "1024", "8192", "16384")
"""The sizes of blocks, in bytes, that `openssl speed` takes unless it is told others."""
_ZSTD = r"^ *(?P<name>-?\d{1,3}#[^:]{1,60}?) *: *\d+ *-> *\d+ \(x?[\d.]+\) ?,"
_MINI = (
    r"stress-ng cpu-cache-mem|y-cruncher pi \w{1,10}|perf sched msg (?:fork thread|pipe proc)|perf memcpy|"
    r"calculating prime numbers|namd \w{1,10} atoms|c-ray render|blender render|kernel defconfig|"
    r"(?:argon2|ffmpeg|xz|zstd|x265) (?:hashing|compilation|compression|encoding)"
)
"""The tests of Mini-Benchmarker, whose times are in seconds."""
_CIPHER = r"^ *(?P<name>[a-z][\w-]+ +\d+b)"
PROGRAMS = (
    PrintedProgram(
        "hackbench",
        re.compile(
            r"^Running (?:in \w+ mode )?with \d+.*tasks|\A\s*(?:Time: [\d.]+\s+)*Time: [\d.]+\s*\Z", re.MULTILINE
        ),
        "lines like `Running in process mode with 10 groups ...` and `Time: 5.844`",
        ((printed_line(r"^Time: *VALUE", "s", "lower"),),),
        start=re.compile(r"^Running "),
        facts={
            r"^Running in (\w+) mode": r"\1",
            r"with (\d+) groups using (\d+) file descriptors": r"\1 groups, \2 fds",
            r"with (\d+\*\d+) \(==": r"\1",
            r"will pass (\d+) messages of (\d+) bytes": r"\1 messages of \2 bytes",
        },
    ),
    PrintedProgram(
        "perf-bench",
        re.compile(r"^ ?# Running '?[a-z-]+/[a-z-]+'? benchmark", re.MULTILINE),
        "lines like `# Running 'sched/pipe' benchmark:` and `4.912345 usecs/op`",
        (
            (
                printed_line(r"^ *(?P<name>[\w-]+), +VALUE, (?P<unit>GB/sec), +total-speed", direction="higher"),
                printed_line(r"^ *VALUE,? (?P<unit>GB/sec) total speed", direction="higher"),
                printed_line(r"^ *VALUE (?P<unit>[nmu]secs/op)", direction="lower"),
                printed_line(rf"^ *VALUE ops{_PER_SECOND}", "ops/s", "higher"),
                printed_line(rf"Averaged VALUE operations{_PER_SECOND}", "ops/s", "higher"),
                printed_line(r"^ *VALUE (?P<unit>[KMG]?B/sec)", direction="higher"),
                printed_line(r"^(?:Wokeup|Requeued) .* in VALUE (?P<unit>[mu]s)\b", direction="lower"),
                printed_line(r"^ *Total time: *VALUE \[?sec", "s", "lower"),
            ),
        ),
        start=re.compile(r"^ ?# Running '?[a-z-]+/[a-z-]+'? benchmark"),
        facts={
            r"^ ?# Running '?([a-z-]+/[a-z-]+)'? benchmark": r"\1",
            r"^# function '([^']+)'": r"\1",
            r"^# Copying (\S+ ?\w*) bytes": r"\1 bytes",
            r"^# (\d+ sender and receiver \w+) per group": r"\1",
            r"^# (\d+ groups) == \d+ (\w+) run": r"\1 of \2",
        },
    ),
    PrintedProgram(
        "wrk2",
        re.compile(r"^ *Thread calibration: mean lat\.", re.MULTILINE),
        "lines like `Thread calibration: mean lat.: 9747us, ...` and `Latency     6.46ms    1.93ms  12.34ms   67.66%`",
        ((printed_line(r"^ +Latency +VALUE(?P<unit>us|ms|s)\b", direction="lower", name="mean latency"),),),
        start=re.compile(r"^Running \S+ tests? @ "),
        facts={
            r"^Running \S+ tests? @ (\S+)": r"\1",
            r"^ +(\d+ threads?) and (\d+ connections?)": r"\1, \2",
        },
    ),
    PrintedProgram(
        "wrk",
        re.compile(r"^Running \S+ tests? @ |^Requests/sec: ", re.MULTILINE),
        "lines like `Running 10s test @ http://...` and `Requests/sec: 49801.12`",
        ((printed_line(r"^Requests/sec: +VALUE", "requests/s", "higher"),),),
        start=re.compile(r"^Running \S+ tests? @ "),
        facts={
            r"^Running \S+ tests? @ (\S+)": r"\1",
            r"^ +(\d+ threads?) and (\d+ connections?)": r"\1, \2",
        },
    ),
    PrintedProgram(
        "ab",
        re.compile(r"^This is ApacheBench|^Requests per second: +[\d.]+ \[#/sec\]", re.MULTILINE),
        "lines like `Requests per second:    1234.56 [#/sec] (mean)`",
        ((printed_line(r"^Requests per second: +VALUE \[#/sec\]", "requests/s", "higher"),),),
        start=re.compile(r"^Server Software:|^This is ApacheBench"),
        facts={r"^Document Path: +(\S+)": r"\1", r"^Concurrency Level: +(\d+)": r"concurrency \1"},
    ),
    PrintedProgram(
        "redis-benchmark",
        re.compile(
            r'^====== .+ ======|: [\d.]+ requests per second|^"test","rps"|^"[A-Z][^"\n]*","[\d.]+"', re.MULTILINE
        ),
        "lines like `====== SET ======` and `throughput summary: 81300.81 requests per second`",
        (
            (
                printed_line(r"throughput summary: *VALUE requests per second", "requests/s", "higher"),
                printed_line(r"^(?P<name>[A-Z][^:]*): VALUE requests per second", "requests/s", "higher"),
                printed_line(r"^VALUE requests per second", "requests/s", "higher"),
                printed_line(r'^"(?P<name>[^"]+)","VALUE"', "requests/s", "higher"),
            ),
        ),
        start=re.compile(r"^====== .+ ======"),
        facts={
            r"^====== (.+) ======": r"\1",
            r"^ +(\d+) parallel clients": r"\1 clients",
            r"^ +(\d+) bytes payload": r"\1 bytes",
        },
    ),
    PrintedProgram(
        "unixbench",
        re.compile(r"System Benchmarks (?:Partial )?Index|BYTE UNIX Benchmarks", re.MULTILINE),
        "lines like `Pipe Throughput   1851218.4 lps   (10.0 s, 7 samples)`, or the table of indices",
        (
            (
                printed_line(
                    r"^(?P<name>\S.*?) +VALUE (?P<unit>lps|lpm|KBps|MWIPS|[A-Za-z]+ps) +\(", direction="higher"
                ),
                printed_line(r"^(?P<name>[A-Za-z]\S*(?: \S+)*) {2,}\d+\.\d +VALUE +\d+\.\d *$", direction="higher"),
            ),
        ),
        start=re.compile(r"running \d+ parallel cop"),
        facts={r"running (\d+) parallel cop(?:y|ies)": r"\1 at once"},
    ),
    PrintedProgram(
        "iperf3-text",
        re.compile(r"^Connecting to host .*, port \d+|^\[ *(?:\d+|SUM)\] .*[KMG]?bits/sec", re.MULTILINE),
        "lines like `[  5]   0.00-10.00  sec  11.2 GBytes  9.61 Gbits/sec      receiver`",
        (
            (
                printed_line(r"^\[SUM\] .* VALUE (?P<unit>[KMGT]?(?:bits|Bytes)/sec).* receiver", direction="higher"),
                printed_line(r"^\[ *\d+\] .* VALUE (?P<unit>[KMGT]?(?:bits|Bytes)/sec).* receiver", direction="higher"),
            ),
        ),
        start=re.compile(r"^Connecting to host "),
    ),
    PrintedProgram(
        "ebizzy",
        re.compile(r"^\d+ records/s\b", re.MULTILINE),
        "lines like `12345 records/s`",
        ((printed_line(r"^VALUE records/s", "records/s", "higher"),),),
    ),
    PrintedProgram(
        "sockperf",
        re.compile(r"^sockperf: ", re.MULTILINE),
        "lines like `sockperf: ====> avg-latency=11.858 (std-dev=1.543, ...)`",
        (
            (
                printed_line(r"^sockperf: .*avg-lat(?:ency)?= *VALUE", "us", "lower", "average latency"),
                printed_line(r"^sockperf: Summary: Latency is VALUE usec", "us", "lower", "average latency"),
            ),
            (printed_line(r"^sockperf: Summary: Message Rate is VALUE \[msg/sec\]", "messages/s", "higher", "rate"),),
        ),
        start=re.compile(r"^sockperf: == version"),
    ),
    PrintedProgram(
        "dbench",
        re.compile(r"^Throughput [\d.]+ MB/sec .*\b(?:clients|procs)\b", re.MULTILINE),
        "lines like `Throughput 415.21 MB/sec  2 clients  2 procs  max_latency=5.123 ms`, as tbench prints them",
        ((printed_line(r"^Throughput VALUE (?P<unit>MB/sec)", direction="higher"),),),
        start=re.compile(r"^(?:db|tb)ench version"),
        facts={r"^Throughput .* (\d+) (?:clients|procs)\b": r"\1 clients"},
    ),
    PrintedProgram(
        "memtier",
        re.compile(r"^Type +Ops/sec +Hits/sec", re.MULTILINE),
        "lines of memtier_benchmark like `Sets        13566.12          ---          ---         1.22345 ...`",
        ((printed_line(r"^(?P<name>Sets|Gets) +VALUE ", "ops/s", "higher"),),),
        start=re.compile(r"^ALL STATS|^(?:BEST|WORST|AGGREGATED AVERAGE) RUN RESULTS"),
        facts={r"^(BEST|WORST|AGGREGATED AVERAGE) RUN RESULTS": r"\1 run"},
    ),
    PrintedProgram(
        "hey",
        re.compile(r"^Summary:\s+Total:\s+[\d.]+ secs", re.MULTILINE),
        "lines like `Requests/sec:\t1998.4567` below `Summary:`",
        ((printed_line(r"^\s+Requests/sec:\s+VALUE", "requests/s", "higher"),),),
        start=re.compile(r"^Summary:"),
    ),
    PrintedProgram(
        "oha",
        re.compile(r"^Summary:\s+Success rate:", re.MULTILINE),
        "lines like `Requests/sec:\t41234.5612` below `Summary:` and `Success rate:`",
        ((printed_line(r"^\s+Requests/sec:\s+VALUE", "requests/s", "higher"),),),
        start=re.compile(r"^Summary:"),
    ),
    PrintedProgram(
        "k6",
        re.compile(r"^ *(?:http_req_duration|iteration_duration|http_reqs|iterations)\.*: ", re.MULTILINE),
        "lines like `http_reqs......................: 11840   394.5/s` and `http_req_duration....: avg=25.2ms ...`",
        (
            (printed_line(r"^ *http_reqs\.*: +\d+ +VALUE/s", "requests/s", "higher"),),
            (printed_line(r"^ *iterations\.*: +\d+ +VALUE/s", "iterations/s", "higher", "iterations"),),
            (
                printed_line(
                    r"^ *http_req_duration\.*: +avg=VALUE(?P<unit>ns|[uµμ]s|ms|s) ",
                    direction="lower",
                    name="mean latency",
                ),
            ),
        ),
        start=re.compile(r"^ *execution: |^ *█ TOTAL RESULTS"),
    ),
    PrintedProgram(
        "h2load",
        re.compile(r"^finished in [\d.]+[mu]?s, [\d.]+ req/s", re.MULTILINE),
        "lines like `finished in 1.02s, 9803.92 req/s, 5.12MB/s`",
        ((printed_line(r"^finished in \S+, VALUE req/s", "requests/s", "higher"),),),
        start=re.compile(r"^starting benchmark"),
    ),
    PrintedProgram(
        "vegeta",
        re.compile(r"^Requests\s+\[total, rate", re.MULTILINE),
        "lines like `Requests      [total, rate, throughput]  1200, 120.00, 65.87`",
        (
            (printed_line(r"^Requests\s+\[total, rate, throughput\]\s+\d+, [\d.]+, VALUE", "requests/s", "higher"),),
            (
                printed_line(
                    r"^Latencies\s+\[(?:min, )?mean,[^\]]*\]\s+(?:[^\s,]+, )?VALUE(?P<unit>ns|[uµμ]s|ms|s),",
                    direction="lower",
                    name="mean latency",
                ),
            ),
        ),
        start=re.compile(r"^Requests\s+\[total"),
    ),
    PrintedProgram(
        "ycsb",
        re.compile(r"^\[OVERALL\], Throughput\(", re.MULTILINE),
        "lines like `[OVERALL], Throughput(ops/sec), 9891.2` and `[READ], AverageLatency(us), 1054.4`",
        (
            (
                printed_line(
                    r"^\[OVERALL\], Throughput\(ops/sec\), (?P<value>[\d.]+(?:E\d+)?)\s*$",
                    "ops/s",
                    "higher",
                    "throughput",
                ),
            ),
            (
                printed_line(
                    r"^\[(?P<name>[A-Z-]+)\], AverageLatency\(us\), (?P<value>[\d.]+(?:E\d+)?)\s*$", "us", "lower"
                ),
            ),
        ),
        start=re.compile(r"^\[OVERALL\], RunTime"),
    ),
    PrintedProgram(
        "filebench",
        re.compile(r"^[\d.]+: IO Summary: ", re.MULTILINE),
        "lines like `60.123: IO Summary: 1234567 ops 20574.123 ops/s 1870/3741 rd/wr 482.1mb/s 0.1ms/op`",
        ((printed_line(r" IO Summary: +\d+ ops,? +VALUE ops/s", "ops/s", "higher"),),),
        start=re.compile(r"^Filebench Version"),
    ),
    PrintedProgram(
        "ioping",
        re.compile(r"^--- .* ioping statistics ---", re.MULTILINE),
        "lines like `min/avg/max/mdev = 95.7 us / 127.6 us / 161.1 us / 22.9 us`",
        (
            (
                printed_line(
                    r"^min/avg/max/mdev = [\d.]+ \w+ / VALUE (?P<unit>[nmu]?s)(?:ec)? /",
                    direction="lower",
                    name="mean latency",
                ),
            ),
        ),
        start=re.compile(r"^--- .* ioping statistics ---"),
        facts={r"^--- (\S+) .*ioping statistics ---": r"\1"},
    ),
    PrintedProgram(
        "ping",
        re.compile(r"^--- .* ping statistics ---", re.MULTILINE),
        "lines like `rtt min/avg/max/mdev = 0.031/0.042/0.058/0.008 ms`",
        (
            (
                printed_line(
                    r"^(?:rtt|round-trip) min/avg/max(?:/\w+)? = [\d.]+/VALUE/\S+ (?P<unit>ms)",
                    direction="lower",
                    name="mean round trip",
                ),
            ),
        ),
        start=re.compile(r"^PING "),
        facts={r"^--- (\S+) ping statistics ---": r"\1"},
    ),
    PrintedProgram(
        "kcbench",
        re.compile(r"^Run \d+ \(-j \d+\): +[\d.]+ seconds", re.MULTILINE),
        "lines like `Run 1 (-j 32):       43.33 seconds / 83.09 kernels/hour [P:2801%, 1245 maj. pagefaults]`",
        ((printed_line(r"^Run \d+ \((?P<name>-j \d+)\): +VALUE seconds", "s", "lower"),),),
        start=re.compile(r"^Processor:"),
        facts={r"^Linux compiled: +(\S+)": r"Linux \1"},
    ),
    PrintedProgram(
        "stream",
        re.compile(r"^Function +Best Rate MB/s", re.MULTILINE),
        "lines like `Copy:           12345.6     0.012988     0.012960     0.013020`",
        ((printed_line(r"^(?P<name>Copy|Scale|Add|Triad): +VALUE ", "MB/s", "higher"),),),
        start=re.compile(r"^STREAM version"),
        facts={
            r"^Array size = (\d+)": r"\1 elements",
            r"^Number of Threads counted = (\d+)": r"\1 threads",
        },
    ),
    PrintedProgram(
        "dd",
        re.compile(r"^\d+ bytes (?:\([^)\n]*\) )?copied, ", re.MULTILINE),
        "lines like `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.23456 s, 870 MB/s`",
        # the rate is rounded to three digits; status=progress prints whole seconds
        ((printed_line(r" copied, (?P<value>\d+[.,]\d+) s(?:econds)?,", "s", "lower"),),),
        facts={r"^(\d+) bytes ": r"\1 bytes"},
    ),
    PrintedProgram(
        "7z",
        re.compile(r"^Dict +Speed +Usage +R/U +Rating", re.MULTILINE),
        "lines of `7z b` like `Avr:             185  11722  21717  |              198  10485  20761`",
        (
            (printed_line(r"^Avr:[^|]* VALUE +\|", "MIPS", "higher", "compressing"),),
            (printed_line(r"^Avr:[^|]*\|.* VALUE *$", "MIPS", "higher", "decompressing"),),
        ),
        start=re.compile(r"^7-Zip "),
        facts={r"Benchmark threads: +(\d+)": r"\1 threads"},
    ),
    PrintedProgram(
        "coremark",
        re.compile(r"^Iterations/Sec +: \d|^CoreMark 1\.0 : \d", re.MULTILINE),
        "lines like `Iterations/Sec   : 32403.402868`, or `CoreMark 1.0 : 32403.402868 / GCC12.2.0 -O2 / Heap`",
        (
            (
                printed_line(r"^Iterations/Sec +: VALUE", "iterations/s", "higher"),
                printed_line(r"^CoreMark 1\.0 : VALUE", "iterations/s", "higher"),
            ),
        ),
        start=re.compile(r"^2K performance run parameters"),
    ),
    PrintedProgram(
        "systemd-analyze",
        re.compile(r"^Startup finished in .*\(kernel\)", re.MULTILINE),
        "lines like `Startup finished in 1.532s (kernel) + 4.221s (userspace) = 5.753s`",
        tuple(
            (
                printed_line(rf"(?:\+|finished in) VALUE(?P<unit>m?s) \({part}\)", direction="lower", name=part),
                printed_line(rf" (?P<value>\d+min \d+(?:\.\d+)?s) \({part}\)", "s", "lower", part),
            )
            for part in ("kernel", "initrd", "userspace")
        ),
        start=re.compile(r"^Startup finished in "),
    ),
    PrintedProgram(
        "hdparm",
        re.compile(r"^ ?Timing (?:O_DIRECT )?(?:cached|buffered disk|disk)? ?reads: ", re.MULTILINE),
        "lines like ` Timing buffered disk reads: 1516 MB in  3.00 seconds = 505.05 MB/sec`",
        (
            (
                printed_line(
                    r"^ *Timing (?P<name>[\w ]+): +\d+ [kMG]B in +[\d.]+ seconds = +VALUE (?P<unit>[kMG]B/sec)",
                    direction="higher",
                ),
            ),
        ),
        start=re.compile(r"^/dev/\S+:"),
        facts={r"^(/dev/\S+):": r"\1"},
    ),
    PrintedProgram(
        "cryptsetup",
        re.compile(r"^# *Algorithm \| +Key \| +Encryption|^PBKDF2-\S+ +\d+ iterations per second", re.MULTILINE),
        "lines like `aes-xts   256b   1134.0 MiB/s   1105.1 MiB/s` below `# Algorithm | Key | Encryption | Decryption`",
        (
            (printed_line(r"^(?P<name>PBKDF2-\S+) +VALUE iterations per second", "iterations/s", "higher"),),
            (printed_line(rf"{_CIPHER} +VALUE (?P<unit>[KMG]iB/s)", direction="higher", name="encryption"),),
            (
                printed_line(
                    rf"{_CIPHER} +\S+ [KMG]iB/s +VALUE (?P<unit>[KMG]iB/s)", direction="higher", name="decryption"
                ),
            ),
        ),
        start=re.compile(r"^# Tests are approximate"),
    ),
    PrintedProgram(
        "mbw",
        re.compile(r"^(?:\d+|AVG)\s+Method: \w+\s+Elapsed: ", re.MULTILINE),
        "lines like `0  Method: MEMCPY  Elapsed: 0.03456  MiB: 256.00000  Copy: 7407.407 MiB/s`",
        (
            (
                printed_line(
                    r"^\d+\s+Method: (?P<name>\w+)\s+Elapsed: [\d.]+\s+MiB: [\d.]+\s+Copy: VALUE (?P<unit>MiB/s)",
                    direction="higher",
                ),
            ),
        ),
        start=re.compile(r"^Long uses \d+ bytes"),
    ),
    PrintedProgram(
        "zstd",
        re.compile(r"(?:^|\r) {0,3}(?:-?\d{1,3}#|\|-)[^:\n\r]{1,60}: *\d+ *-> *\d+ \(x?[\d.]+\)", re.MULTILINE),
        "lines like ` 1#silesia.tar : 211957760 ->  73422932 (x2.887),  514.2 MB/s, 1612.4 MB/s`, as `zstd -b` prints",
        (
            (printed_line(rf"{_ZSTD} *VALUE (?P<unit>MB/s)[ ,]+[\d.]+ MB/s", direction="higher", name="compression"),),
            (
                printed_line(
                    rf"{_ZSTD} *[\d.]+ MB/s[ ,]+VALUE (?P<unit>MB/s)", direction="higher", name="decompression"
                ),
            ),
        ),
    ),
    PrintedProgram(
        "openssl",
        re.compile(r"^type +16 bytes +64 bytes +256 bytes +1024 bytes +8192 bytes +16384 bytes", re.MULTILINE),
        "lines like `sha256  82114.77k  207661.03k ...` below `type  16 bytes  64 bytes ...`, of `openssl speed`",
        tuple(
            (
                printed_line(
                    rf"^(?P<name>[\w()-]{{1,40}}(?: [\w()-]{{1,40}}){{0,2}}) +(?:[\d.]+k +){{{place}}}VALUEk(?: |$)",
                    "kB/s",
                    "higher",
                    f"{size} bytes",
                ),
            )
            for place, size in enumerate(_OPENSSL)
        ),
    ),
    PrintedProgram(
        "tinymembench",
        re.compile(r"^ ?tinymembench v|^== Memory bandwidth tests +==", re.MULTILINE),
        "lines like ` standard memcpy    :  13225.6 MB/s (2.1%)`",
        ((printed_line(r"^ (?P<name>\S[^:]{0,70}?) +: +VALUE (?P<unit>MB/s)", direction="higher"),),),
        start=re.compile(r"^ ?tinymembench v"),
    ),
    PrintedProgram(
        "mini-benchmarker",
        re.compile(rf"^(?:{_MINI}): \d+\.\d+ *$", re.MULTILINE),
        "lines like `stress-ng cpu-cache-mem: 14.51` and `schbench p99 latency (us): 3412`",
        (
            # A program that wasn't there ends within some hundredths of a second.
            (printed_line(rf"^(?P<name>{_MINI}): (?!0\.0)VALUE *$", "s", "lower"),),
            (printed_line(r"^(?P<name>\w{1,20} [\w.]{1,10} latency) \((?P<unit>us)\): VALUE *$", direction="lower"),),
            (printed_line(r"^(?P<name>schbench avg) rps: VALUE *$", "requests/s", "higher"),),
        ),
    ),
    PrintedProgram(
        "time",
        re.compile(
            r"^Executed in +\d|^real\s+\d\S*\s+user\s+\d|"
            r"Elapsed \(wall clock\) time|user .*elapsed \d+%CPU|s user \S+s system \d+% cpu",
            re.MULTILINE,
        ),
        "lines like `real 0m12.345s`, as the shell's time writes them",
        tuple(
            tuple(printed_line(pattern, "s", "lower", name) for pattern in patterns)
            for name, patterns in {
                "real": (
                    r"^real\s+(?P<value>\d\S*)",
                    r"Elapsed \(wall clock\) time .*: (?P<value>[\d:.,]+)",
                    r"system (?P<value>[\d:.,]+)elapsed",
                    r"% cpu (?P<value>[\d:.,]+) total",
                    r"^Executed in +VALUE (?P<unit>[a-z]+)",
                ),
                "user": (
                    r"^user\s+(?P<value>\d\S*)",
                    r"User time \(seconds\): VALUE",
                    r"VALUEuser ",
                    r" VALUEs user ",
                    r"^ +usr time +VALUE (?P<unit>[a-z]+)",
                ),
                "sys": (
                    r"^sys\s+(?P<value>\d\S*)",
                    r"System time \(seconds\): VALUE",
                    r"user VALUEsystem ",
                    r"s user VALUEs system",
                    r"^ +sys time +VALUE (?P<unit>[a-z]+)",
                ),
            }.items()
        ),
    ),
)
