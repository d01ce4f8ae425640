"""The statements of the queue that decide, in SQL: each is one step for PostgreSQL."""

from __future__ import annotations

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

CHANNEL = "kdyno_fleet"
"""The channel of NOTIFY: the payload is the run whose tasks have ended."""
SPAN = "make_interval(secs => :lease)"
AFTER_START = f"pg_postmaster_start_time() + {SPAN}"
"""While the server was down nobody could renew a lease: each gets one span after the start."""
EXPIRED = f"now() > GREATEST({{}}, {AFTER_START})"
CLAIMABLE_STATE = f"(t.state = 'open' OR (t.state = 'leased' AND {EXPIRED.format('t.until')}))"
IS_ALIVE = f"now() <= GREATEST(w.seen + {SPAN}, {AFTER_START})"
NAMED = "(key, attempt) IN (SELECT * FROM unnest(CAST(:keys AS text[]), CAST(:attempts AS int[])))"
LEASED = "key = :key AND attempt = :attempt AND fence = :fence AND state = 'leased'"


def _with_json(statement: str, name: str) -> TextClause:
    return text(statement).bindparams(bindparam(name, type_=JSONB))


EXPIRED_LEASE = f"t.state = 'leased' AND {EXPIRED.format('t.until')}"
FREE_SLOT = f"""NOT EXISTS (
    SELECT 1 FROM kdyno_fleet_task o
    WHERE o.kind = 'boot-wall' AND o.state = 'leased' AND o.host = :host AND NOT {EXPIRED.format("o.until")})"""
"""A host measures one boot at a time."""


def _claim(condition: str, order: str = "t.position") -> TextClause:
    """Return the statement that leases the first task of a run for which a condition holds."""
    return text(f"""
WITH next AS (
    SELECT t.key, t.attempt, t.state, t.worker, t.host
    FROM kdyno_fleet_task t LEFT JOIN kdyno_fleet_block b ON b.id = t.block
    WHERE t.run = :run AND t.kind = :kind AND {condition} AND NOT jsonb_exists(t.refusals, :name)
        AND t.subject <> ALL(CAST(:not_now AS text[]))
    ORDER BY {order}
    FOR UPDATE OF t SKIP LOCKED
    LIMIT 1)
UPDATE kdyno_fleet_task t
SET state = 'leased', fence = t.fence + 1, worker = :worker, host = :host, claimed = now(), until = now() + {SPAN}
FROM next WHERE t.key = next.key AND t.attempt = next.attempt
RETURNING t.key, t.attempt, t.run, t.kind, t.subject, t.block, t.position, t.spec, t.fence,
    next.state AS before_state, next.worker AS before_worker, next.host AS before_host
""")


CLAIM_PREFERRED = _claim(f"t.key = :preferred AND {CLAIMABLE_STATE}")
CLAIM_EXPIRED = _claim(EXPIRED_LEASE)
CLAIM_OPEN = _claim("t.state = 'open'")
"""Of tasks without a block. Each of these three finds its task by an index, however many tasks there are."""
CLAIM_OF_BLOCK = _claim(
    f"{CLAIMABLE_STATE} AND (b.host IS NULL OR b.host = :host) AND {FREE_SLOT}",
    "(b.host IS NOT NULL) DESC, t.position",
)
"""Of a block that this host has begun, or of the first that nobody has."""
BIND = text(
    "UPDATE kdyno_fleet_block SET host = :host WHERE id = :block AND (host IS NULL OR host = :host) RETURNING id"
)
LOCK_HOST = text("SELECT pg_advisory_xact_lock(hashtext('kdyno wall'), hashtext(:host))")
UNBIND = text(f"""
UPDATE kdyno_fleet_block b SET host = NULL
WHERE b.host IS NOT NULL AND b.host <> :host AND NOT b.released
    AND EXISTS (SELECT 1 FROM kdyno_fleet_task t WHERE t.block = b.id AND t.state IN ('open', 'leased'))
    AND NOT EXISTS (SELECT 1 FROM kdyno_fleet_worker w WHERE w.host = b.host AND {IS_ALIVE})
RETURNING b.id
""")
REOPEN_BLOCKS = text("""
UPDATE kdyno_fleet_task SET state = 'open', fence = fence + 1, worker = NULL, host = NULL, until = NULL, result = NULL
WHERE block = ANY(:blocks) AND state IN ('leased', 'done')
""")
RENEW = text(f"""
UPDATE kdyno_fleet_task SET until = now() + {SPAN}
WHERE worker = :worker AND state = 'leased' AND (key, attempt, fence) IN (
    SELECT * FROM unnest(CAST(:keys AS text[]), CAST(:attempts AS int[]), CAST(:fences AS bigint[])))
RETURNING key, attempt
""")
SEEN = text("UPDATE kdyno_fleet_worker SET seen = now() WHERE id = :worker")
COMMIT = _with_json(
    f"""
UPDATE kdyno_fleet_task SET state = 'done', result = :result, ended = now(), until = NULL
WHERE {LEASED} AND worker = :worker
RETURNING run, subject
""",
    "result",
)
COMMITTED = text("""
SELECT 1 FROM kdyno_fleet_task
WHERE key = :key AND attempt = :attempt AND fence = :fence AND worker = :worker AND state = 'done'
""")
REFUSE = text(f"""
UPDATE kdyno_fleet_task
SET state = 'open', worker = NULL, host = NULL, until = NULL,
    refusals = refusals || jsonb_build_object(CAST(:name AS text), CAST(:reason AS text))
WHERE {LEASED}
""")
GIVE_BACK = text(f"UPDATE kdyno_fleet_task SET state = 'open', worker = NULL, host = NULL, until = NULL WHERE {LEASED}")
REOPEN = text("""
UPDATE kdyno_fleet_task SET state = 'open', worker = NULL, host = NULL, until = NULL
WHERE worker = :worker AND state = 'leased'
""")
NOTIFY = text(f"SELECT pg_notify('{CHANNEL}', :run)")
IS_SILENT = text(f"""
SELECT NOT EXISTS (SELECT 1 FROM kdyno_fleet_worker w WHERE w.id = :worker AND {IS_ALIVE})
""")
PROVEN = text("SELECT EXISTS (SELECT 1 FROM kdyno_fleet_task WHERE subject = :subject AND state = 'done')")
LOCK_SUBJECT = text("SELECT pg_advisory_xact_lock(hashtext('kdyno subject'), hashtext(:subject))")
LEASES = text("SELECT count(*) FROM kdyno_fleet_task WHERE subject = :subject AND state = 'leased'")
DEATHS = text(f"""
SELECT host, count(*) AS deaths FROM (
    SELECT host FROM kdyno_fleet_death WHERE subject = :subject AND (key = :key OR NOT :is_proven)
    UNION ALL
    SELECT t.host FROM kdyno_fleet_task t
    WHERE NOT :is_proven AND t.subject = :subject AND t.key <> :key AND t.state = 'leased'
        AND {EXPIRED.format("t.until")}
        AND NOT EXISTS (SELECT 1 FROM kdyno_fleet_worker w WHERE w.id = t.worker AND {IS_ALIVE})) AS dead
GROUP BY host ORDER BY host
""")
EXONERATE = text("DELETE FROM kdyno_fleet_death WHERE subject = :subject")
QUARANTINE = text("""
UPDATE kdyno_fleet_task
SET state = 'quarantined', result = jsonb_build_object('reason', CAST(:reason AS text)), ended = now(), until = NULL
WHERE subject = :subject AND (state = 'open' OR (key = :key AND attempt = :attempt))
""")
QUARANTINED_AMONG = text("""
SELECT DISTINCT subject FROM kdyno_fleet_task WHERE subject = ANY(:subjects) AND state = 'quarantined'
""")
QUARANTINE_NEW = text("""
UPDATE kdyno_fleet_task t SET state = 'quarantined', result = q.result, ended = now()
FROM kdyno_fleet_task q
WHERE t.subject = ANY(:subjects) AND t.state = 'open' AND q.subject = t.subject AND q.state = 'quarantined'
""")
LIFT = text("""
UPDATE kdyno_fleet_task SET state = 'open', result = NULL, ended = NULL, worker = NULL, host = NULL
WHERE subject = :subject AND state = 'quarantined'
""")
QUARANTINED = text("""
SELECT subject, min(result ->> 'reason') AS reason FROM kdyno_fleet_task WHERE state = 'quarantined'
GROUP BY subject ORDER BY subject
""")
ENDED = text(f"""
SELECT t.key, t.attempt, t.state, t.host, t.result, t.block FROM kdyno_fleet_task t
WHERE {NAMED} AND t.state IN ('done', 'quarantined') AND (t.block IS NULL OR NOT EXISTS (
    SELECT 1 FROM kdyno_fleet_task o WHERE o.block = t.block AND o.state IN ('open', 'leased')))
""")
RELEASE = text("UPDATE kdyno_fleet_block SET released = true WHERE id = ANY(:blocks) AND NOT released")
STANDING = text(f"""
SELECT t.key, {CLAIMABLE_STATE} AS is_claimable, b.host, t.refusals
FROM kdyno_fleet_task t LEFT JOIN kdyno_fleet_block b ON b.id = t.block
WHERE t.run = :run AND t.kind = :kind AND t.state IN ('open', 'leased') ORDER BY t.position
""")
REFUSALS = text("""
SELECT key, attempt, refusals FROM kdyno_fleet_task
WHERE run = :run AND state = 'open' AND refusals <> CAST('{}' AS jsonb)
""")
WITHDRAW = text("DELETE FROM kdyno_fleet_task WHERE run = :run AND state = 'open'")
FORGET = text("DELETE FROM kdyno_fleet_task WHERE run = :run AND state = 'done'")
FORGET_BLOCKS = text("""
DELETE FROM kdyno_fleet_block b WHERE NOT EXISTS (SELECT 1 FROM kdyno_fleet_task t WHERE t.block = b.id)
""")
WORKERS = text(f"SELECT w.* FROM kdyno_fleet_worker w WHERE {IS_ALIVE} ORDER BY w.name")
FORGET_WORKERS = text(f"""
DELETE FROM kdyno_fleet_worker w WHERE w.seen < now() - interval '1 day' AND NOT {IS_ALIVE}
""")
