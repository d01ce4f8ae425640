"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "pgod-listing": Format(
        "kdyno.profile.pgod:PgodListing",
        "`kdyno-pgod status --json`, and the header of its archives",
        mode="validation",
    ),
    "profile-cover": Format("kdyno.profile.coverage:Coverage", "`kdyno profile cover --json`"),
    "profile-merge": Format("kdyno.profile.merge_files:Merged", "`kdyno profile merge --json`"),
    "profile-objects": Format("kdyno.profile.objects:ProfileObjects", "`kdyno profile objects --json`"),
    "profile-overlap": Format("kdyno.profile.overlap:Overlap", "`kdyno profile overlap --json`"),
    "profile-pull": Format(
        "kdyno.profile.pull:Pulled", "`kdyno profile pull --json`, and pulled.json in the directory of the counters"
    ),
    "profile-show": Format("kdyno.profile.show:ProfileView", "`kdyno profile show --json`"),
    "profile-stale": Format("kdyno.profile.stale:Stale", "`kdyno profile stale --json`"),
}
