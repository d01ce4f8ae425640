"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "run-file": Format(
        "kdyno.store.run_file:RunFileManifest", "manifest.json in what `kdyno store export` writes", mode="validation"
    ),
    "run-file-boot": Format("kdyno.store.whole:WholeBoot", "boots/N.json in it", mode="validation"),
    "run-file-run": Format("kdyno.store.run_file:RunFileRun", "run.json in it", mode="validation"),
    "runs": Format("kdyno.store.listing:RunSummaries", "`kdyno runs --json`"),
    "show": Format("kdyno.store.records:RunWithBoots", "`kdyno show --json`"),
    "store-gc": Format("kdyno.store.upkeep.model:StoreUse", "`kdyno store gc --json`"),
}
