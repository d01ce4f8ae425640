"""What programs printed, by the format that `kdyno judge` reads it as."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "foreign"
OUTPUTS = {
    "lmbench": ("lmbench-before-1.txt", "lmbench-after-1.txt"),
    "hyperfine": (
        "hyperfine-before.json",
        "hyperfine-after.json",
        "hyperfine-means-after.csv",
        "hyperfine-printed.txt",
    ),
    "pyperf": ("pyperf-before.json", "pyperf-after.json"),
    "google-benchmark": (
        "google-before.json",
        "google-after.json",
        "google-means-after.json",
        "google-after.csv",
        "google-after.txt",
    ),
    "rustc-perf": ("rustc-perf-before.txt", "rustc-perf-after.txt", "rustc-perf.json"),
    "phoronix": ("phoronix-before.xml", "phoronix-after.xml", "phoronix.xml", "phoronix.csv"),
    "pgbench": ("pgbench-before.txt", "pgbench-after.txt", "pgbench-progress.txt", "pgbench-rate.txt"),
    "criterion": ("criterion-before.csv", "criterion-after.csv", "criterion-after.txt", "criterion-estimates.json"),
    "perf": ("perf-r-before.csv", "perf-r-after.csv", "perf-j-after.json"),
    "stress-ng": ("stress-before.yaml", "stress-after.yaml", "stress-after.txt"),
    "fio": ("fio-before.json", "fio-after.json", "fio-terse.txt"),
    "iperf3": ("iperf3-before.json", "iperf3-after.json"),
    "lkp": ("lkp-before.json", "lkp-after.json", "lkp.txt"),
    "sysbench": ("sysbench-before.txt", "sysbench-after.txt"),
    "go-bench": ("go-bench-before.txt", "go-bench-after.txt"),
    "hackbench": ("hackbench-before.txt", "hackbench-after.txt"),
    "perf-bench": ("perf-bench-before.txt", "perf-bench-after.txt"),
    "wrk": ("wrk-before.txt", "wrk-after.txt"),
    "perf-text": ("perf-printed-before.txt", "perf-printed-after.txt"),
    "iperf": ("iperf-before.txt", "iperf-after.txt"),
    "ministat": ("ministat-before.txt", "ministat-after.txt"),
    "hey": ("hey-before.txt", "hey-after.txt"),
    "oha": ("oha-before.txt", "oha-after.txt"),
    "k6": ("k6-before.txt", "k6-after.txt"),
    "h2load": ("h2load-before.txt", "h2load-after.txt"),
    "vegeta": ("vegeta-before.txt", "vegeta-after.txt"),
    "ycsb": ("ycsb-before.txt", "ycsb-after.txt"),
    "filebench": ("filebench-before.txt", "filebench-after.txt"),
    "ioping": ("ioping-before.txt", "ioping-after.txt"),
    "ping": ("ping-before.txt", "ping-after.txt"),
    "wrk2": ("wrk2-before.txt", "wrk2-after.txt"),
    "ab": ("ab-before.txt", "ab-after.txt"),
    "redis-benchmark": ("redis-before.txt", "redis-after.txt"),
    "unixbench": ("unixbench-before.txt", "unixbench-after.txt"),
    "iperf3-text": ("iperf3-before.txt", "iperf3-after.txt"),
    "time": ("time-before.txt", "time-after.txt"),
    "pytest-benchmark": ("pytest-benchmark-before.json", "pytest-benchmark-after.json"),
    "pct-imp": ("pct-imp-before.txt", "pct-imp-after.txt", "pct-imp.txt"),
    "mmtests": ("mmtests-before.txt", "mmtests-after.txt", "mmtests.txt"),
    "schbench": ("schbench-before.txt", "schbench-after.txt"),
    "netperf": ("netperf-before.txt", "netperf-after.txt", "netperf-k-after.txt"),
    "ebizzy": ("ebizzy-before.txt", "ebizzy-after.txt"),
    "cyclictest": ("cyclictest-before.txt", "cyclictest-after.txt", "cyclictest-histogram.txt"),
    "sockperf": ("sockperf-before.txt", "sockperf-after.txt"),
    "dbench": ("dbench-before.txt", "dbench-after.txt"),
    "memtier": ("memtier-before.txt", "memtier-after.txt"),
    "kcbench": ("kcbench-before.txt", "kcbench-after.txt"),
    "kernbench": ("kernbench-before.txt", "kernbench-after.txt"),
    "stream": ("stream-before.txt", "stream-after.txt"),
    "dd": ("dd-before.txt", "dd-after.txt"),
    "7z": ("7z-before.txt", "7z-after.txt"),
    "coremark": ("coremark-before.txt", "coremark-after.txt"),
    **{
        name: (f"{name}-before.txt", f"{name}-after.txt")
        for name in (
            *("systemd-analyze", "hdparm", "cryptsetup", "mbw", "zstd", "openssl", "tinymembench"),
            "mini-benchmarker",
        )
    },
    "jmh": ("jmh-before.json", "jmh-after.json"),
    "will-it-scale": ("will-it-scale-before.csv", "will-it-scale-after.csv"),
    "numbers": ("numbers-before.txt", "numbers-after.txt"),
}
"""A file of either variant, and others."""
