"""The errors of a fleet."""

from __future__ import annotations

from kdyno.base.errors import InfrastructureError, Unbuildable, UserError


class NotAFleet(UserError):
    message = "{path} is not the directory of a fleet: {why}"
    hint = "name the directory that `kdyno fleet init` made, or a copy of it"


class FleetThere(UserError):
    message = "{path} is the directory of a fleet already"
    hint = "name another directory; a second fleet needs certificates and a database of its own"


class NotPostgresql(UserError):
    message = "the queue of a fleet can't be in {where}: only PostgreSQL has leases that several hosts can share"
    hint = "pass --database postgresql://USER@HOST/DATABASE"


class QueueMissing(UserError):
    message = "the database {where} holds no queue of a fleet"
    hint = "run: kdyno fleet migrate DIR"


class QueueOlder(UserError):
    message = "the queue in {where} has version {version}, and this kdyno needs version {ours}"
    hint = "end the fleet's workers, then run: kdyno fleet migrate DIR"


class QueueNewer(UserError):
    message = "the queue in {where} has version {version}, which this kdyno doesn't know (it knows {ours})"
    hint = "use the kdyno that migrated it; all programs of a fleet must be of the same version"


class OtherFleet(UserError):
    message = "the database {where} belongs to the fleet {theirs}, and this is the fleet {ours}"
    hint = "give each fleet a database of its own: kdyno fleet init --database URL"


class QueueFailed(InfrastructureError):
    message = "the queue in {where} can't be used: {why}"
    hint = "check the PostgreSQL server, then run the same command again: what was finished is kept"


class SchedulerUnreachable(InfrastructureError):
    message = "can't reach the scheduler {address}: {why}"
    hint = "start it with `kdyno fleet scheduler DIR`, and check that both sides have certificates of one fleet"


class OtherKdyno(UserError):
    message = "the {what} has another kdyno ({theirs}) than this one ({ours})"
    hint = "install the same kdyno everywhere: version and content must match, so that keys mean the same"


class NobodyOffers(UserError):
    message = "no worker of the fleet can do this: {missing}"
    hint = "start a worker that offers it (kdyno worker DIR --help), or change the experiment"


class NobodyLeft(InfrastructureError):
    message = "none of the workers that this run began with is there any more ({names})"
    hint = "start them again, with the same names"


class RefusedByFleet(Unbuildable):
    message = "{error} (said by {host}, which was to build it)"
    hint = "{advice}"


class BuildQuarantined(UserError):
    message = "{variants} can't be built on the fleet: {why}"
    hint = "look at those hosts; `kdyno fleet release DIR {subject}` lifts it, and without --fleet this host builds it"


class AnotherImage(InfrastructureError):
    message = "{host} built the image {built} in place of {planned}"
    hint = "look at that worker: nothing of its image was kept here"


class BlobMissing(InfrastructureError):
    message = "the blob store {where} has no file {digest}"
    hint = "run the same command again: the side that has the file puts it there"


class BlobDiffers(InfrastructureError):
    message = "the blob {digest} in {where} has another content: its SHA-256 is {actual}"
    hint = "remove that file from the blob store, and run the same command again"


class BlobStoreFailed(InfrastructureError):
    message = "the blob store {where} can't be used: {why}"
    hint = "check the URL of the blob store in fleet.toml, and that this host can reach it"


class WallSlotTaken(InfrastructureError):
    message = "another worker of this host measures in the wall lane: it holds {path}"
    hint = "start this one without --wall: a host has one wall slot"


class NothingToCheck(UserError):
    message = "no worker of the fleet measures in the wall lane{on}"
    hint = "start one with --wall on that host: kdyno worker DIR --wall"


class NotQuarantined(UserError):
    message = "{subject} is not the start of one quarantined image"
    hint = "`kdyno fleet workers DIR` lists what is quarantined"
