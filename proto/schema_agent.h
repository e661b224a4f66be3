/*
 * schema_agent.h - the tables of what agents send and get; the form is told in schema.h.
 */
#ifndef XF_PROTO_SCHEMA_AGENT_H
#define XF_PROTO_SCHEMA_AGENT_H

/* clang-format off */

/* ---- parts of messages ---- */

#define XF_MSG_HELD(F, L) \
    F(u64, task,    1, REQUIRED, UINT64_MAX, "a leased task") \
    F(u32, attempt, 2, REQUIRED, UINT32_MAX, "its attempt")

#define XF_MSG_PART(F, L) \
    F(u32, part_no, 1, REQUIRED, XF_PART_NO_MAX, "from 1") \
    F(str, etag,    2, REQUIRED, XF_ETAG_MAX,    "as the service gave it, without quotes") \
    F(u64, size,    3, OPTIONAL, UINT64_MAX,     "bytes") \
    F(bin, md5,     4, OPTIONAL, XF_MD5_LEN,     "of the bytes, when the agent saw them") \
    F(bin, crc32c,  5, OPTIONAL, XF_CRC_LEN,     "of the bytes, big endian, when the agent saw them") \
    F(u64, through, 6, OPTIONAL, UINT64_MAX,     "bytes that went through the agent for it") \
    F(bin, sum,     7, OPTIONAL, XF_PART_SUM_MAX, "its checksum by the upload's algorithm, as the service confirmed it; big endian")

/* Number 12 was a time of the coordinator's clock; it stays unused. */
#define XF_MSG_TASK(F, L) \
    F(u64, task,       1, REQUIRED, UINT64_MAX,            "id; for ever") \
    F(u32, attempt,    2, REQUIRED, UINT32_MAX,            "fences late reports; counts the leases of the task") \
    F(str, job,        3, REQUIRED, XF_JOB_ID_MAX,         "public id") \
    F(u32, kind,       4, REQUIRED, XF_TASK_KIND_N - 1,    "1 batch, 2 recheck, 3 open, 4 parts, 5 close, 6 abort") \
    F(bin, manifest,   5, REQUIRED, XF_MANIFEST_BYTES_MAX, "the objects; for an upload its one object") \
    F(bin, done,       6, OPTIONAL, XF_RESULT_BYTES_MAX,   "result so far: what an earlier lease reported") \
    F(str, upload_id,  7, OPTIONAL, XF_UPLOAD_ID_MAX,      "parts, close, abort (empty there: only an intent is known)") \
    F(u64, part_size,  8, OPTIONAL, UINT64_MAX,            "uploads: bytes of every part but the last") \
    F(u32, total_parts, 9, OPTIONAL, XF_PART_NO_MAX,        "uploads: parts in all") \
    F(u32, first_part, 10, OPTIONAL, XF_PART_NO_MAX,       "parts: the first of the range") \
    F(u32, last_part,  11, OPTIONAL, XF_PART_NO_MAX,       "parts: the last of the range") \
    F(bin, attrs,      13, OPTIONAL, XF_DIGEST_MAX,        "uploads: digest of the attributes given at open") \
    L(part, parts,     14, OPTIONAL, XF_PART_NO_MAX,       "parts: finished ones of the range; close: all") \
    F(u32, pass,       15, OPTIONAL, UINT32_MAX,           "number of the job's pass") \
    F(i64, intent_age_ms, 16, OPTIONAL, INT64_MAX,         "open, abort: how long ago the intent was stored; clocks of two hosts may differ") \
    F(u32, sum,        17, OPTIONAL, XF_SUM_KIND_MAX,      "parts, close: the service sums the object by 1 CRC64NVME, 2 CRC32C, 3 CRC32; 0 it does not say")

#define XF_MSG_ITEM(F, L) \
    F(u64, task,        1, REQUIRED, UINT64_MAX,          "the leased task") \
    F(u32, attempt,     2, REQUIRED, UINT32_MAX,          "its attempt") \
    F(u32, kind,        3, REQUIRED, XF_ITEM_N - 1,       "0 checkpoint, 1 done, 2 opened, 3 give_back, 4 failed") \
    F(bin, result,      4, OPTIONAL, XF_RESULT_BYTES_MAX, "delta of the result") \
    L(part, parts,      5, OPTIONAL, XF_TASK_PARTS_MAX,   "parts tasks: finished since the last item") \
    F(u32, how,         6, OPTIONAL, XF_HOW_N - 1,        "give_back: 2 drained, 4 expired, 5 unfit, 6 failed, 8 stopped") \
    F(u32, code,        7, OPTIONAL, XF_CODE_N - 1,       "give_back, failed: why") \
    F(u32, http_status, 8, OPTIONAL, 999,                 "failed: of the answer") \
    F(str, s3_code,     9, OPTIONAL, XF_S3_CODE_MAX,      "failed: as \"AccessDenied\"") \
    F(str, text,        10, OPTIONAL, XF_TEXT_MAX,        "give_back, failed: for people; no secret") \
    F(flag, retryable,  11, OPTIONAL, 1,                  "failed: a later pass may succeed") \
    F(str, upload_id,   12, OPTIONAL, XF_UPLOAD_ID_MAX,   "opened") \
    F(u64, part_size,   13, OPTIONAL, UINT64_MAX,         "opened: bytes of every part but the last") \
    F(bin, attrs,       14, OPTIONAL, XF_DIGEST_MAX,      "opened: digest of the attributes") \
    F(u32, attempts,    15, OPTIONAL, XF_OBJECT_ATTEMPTS_MAX, "uploads: tries spent on the object in this lease") \
    F(u64, size,        16, OPTIONAL, UINT64_MAX,         "opened: of the source as the open saw it; 0: as listed") \
    F(str, etag,        17, OPTIONAL, XF_ETAG_MAX,        "opened: of the source as the open saw it; empty: as listed") \
    F(u32, sum,         18, OPTIONAL, XF_SUM_KIND_MAX,    "opened: as in a task")

#define XF_MSG_ACK(F, L) \
    F(u64, task,    1, REQUIRED, UINT64_MAX,    "of the item") \
    F(u32, attempt, 2, REQUIRED, UINT32_MAX,    "of the item") \
    F(u32, code,    3, REQUIRED, XF_CODE_N - 1, "0 committed; stale: not yours any more, stop it; else not taken: send it again, or if it is FATAL give the task back")

#define XF_MSG_ORDER(F, L) \
    F(u32, kind,        1, REQUIRED, XF_ORDER_N - 1, "0 run, 1 pause, 2 cancel, 3 drain, 4 undrain, 5 drop_task") \
    F(str, job,         2, OPTIONAL, XF_JOB_ID_MAX,  "run, pause, cancel") \
    F(u64, task,        3, OPTIONAL, UINT64_MAX,     "drop_task") \
    F(u32, attempt,     4, OPTIONAL, UINT32_MAX,     "drop_task") \
    F(u32, in_flight,   5, OPTIONAL, UINT32_MAX,     "run: most requests at a time on this agent; 0 no limit") \
    F(u64, bandwidth,   6, OPTIONAL, UINT64_MAX,     "run: bytes a second for this agent; 0 no limit") \
    F(u32, mode,        7, OPTIONAL, XF_MODE_N - 1,  "run: 0 as the spec says, 1 server, 2 relay") \
    F(u64, request_rate, 8, OPTIONAL, UINT64_MAX,    "run: requests in 1,000 seconds for this agent; 0 no limit")

#define XF_MSG_NOTICE(F, L) \
    F(str, job,  1, REQUIRED, XF_JOB_ID_MAX,      "public id") \
    F(str, code, 2, REQUIRED, XF_NOTICE_CODE_MAX, "a word, as \"mode_changed\"; one notice a job and word is kept") \
    F(str, text, 3, REQUIRED, XF_TEXT_MAX,        "for people; no secret")

/* ---- agent ---- */

#define XF_MSG_HELLO(F, L) \
    F(str, agent_id,     1, REQUIRED, XF_AGENT_ID_MAX, "name of the agent, unique") \
    F(str, version,      2, REQUIRED, XF_VERSION_MAX,  "of the program") \
    F(str, host,         3, OPTIONAL, XF_HOST_MAX,     "host name, for people") \
    F(u32, lanes,        4, OPTIONAL, 65536,           "worker threads") \
    F(u64, memory_bytes, 5, OPTIONAL, UINT64_MAX,      "of the part pool") \
    L(held, held,        6, OPTIONAL, XF_HELD_MAX,     "leases that this process still works on")

#define XF_MSG_HELLO_REPLY(F, L) \
    F(u64, session,        1, REQUIRED, UINT64_MAX,     "for the envelope from now on; not 0") \
    F(u32, lease_ttl_ms,   2, REQUIRED, XF_MS_MAX,      "a lease lives this long after the beat that renews it") \
    F(u32, beat_ms,        3, REQUIRED, XF_MS_MAX,      "time between beats") \
    F(u32, margin_ms,      4, REQUIRED, XF_MS_MAX,      "no write starts later than ttl - margin after the beat was sent") \
    F(u32, checkpoint_ms,  5, REQUIRED, XF_MS_MAX,      "report at least this often when there is something") \
    F(u32, checkpoint_max, 6, REQUIRED, XF_CHECKPOINT_MAX, "report as soon as so many outcomes wait") \
    F(u32, poll_ms,        7, REQUIRED, XF_MS_MAX,      "a poll is answered within this time") \
    L(held, kept,          8, OPTIONAL, XF_HELD_MAX,    "of the held leases those that are still the agent's; stop the others") \
    L(order, orders,       9, OPTIONAL, XF_ORDERS_MAX,  "what holds now") \
    F(str, version,        10, OPTIONAL, XF_VERSION_MAX, "of the coordinator")

#define XF_MSG_LEASE(F, L) \
    F(u32, free_tasks,   1, REQUIRED, XF_TASKS_MAX, "most tasks wanted") \
    F(u32, free_objects, 2, REQUIRED, UINT32_MAX,   "room for objects") \
    F(u64, free_bytes,   3, REQUIRED, UINT64_MAX,   "room for object bytes; one task is given even when larger") \
    F(u32, kinds,        4, REQUIRED, XF_TASK_ALL,  "bit set: 1 << kind of task")

#define XF_MSG_LEASE_REPLY(F, L) \
    L(task, tasks,   1, OPTIONAL, XF_TASKS_MAX, "leased; committed before they were sent") \
    F(u32, wait_ms,  2, OPTIONAL, XF_MS_MAX,    "nothing was ready: ask again after this time")

#define XF_MSG_JOB(F, L) \
    F(str, job, 1, REQUIRED, XF_JOB_ID_MAX, "public id")

#define XF_MSG_JOB_REPLY(F, L) \
    F(str, job,   1, REQUIRED, XF_JOB_ID_MAX, "public id") \
    F(str, spec,  2, REQUIRED, XF_SPEC_MAX,   "migrate.toml as it was submitted; names credentials, holds none") \
    L(order, orders, 3, OPTIONAL, XF_ORDERS_MAX, "what holds for the job now") \
    F(i64, started_ms, 4, OPTIONAL, INT64_MAX,  "wall time of the job's start: what was written at the destination before is not ours")

#define XF_MSG_BEAT(F, L) \
    L(item, items,     1, OPTIONAL, XF_ITEMS_MAX,   "reports; a beat renews every lease in `held`") \
    L(held, held,      2, OPTIONAL, XF_HELD_MAX,    "leases to renew") \
    F(u32, in_flight,  3, OPTIONAL, UINT32_MAX,     "requests in flight") \
    F(f64, objects_s,  4, OPTIONAL, 1e15,           "present rate") \
    F(f64, bytes_s,    5, OPTIONAL, 1e18,           "present rate") \
    F(u64, throttled,  6, OPTIONAL, UINT64_MAX,     "answers of \"slow down\" since the last beat") \
    F(u64, retries,    7, OPTIONAL, UINT64_MAX,     "requests tried again since the last beat") \
    L(notice, notices, 8, OPTIONAL, XF_NOTICES_MAX, "for the job's page") \
    F(str, unwell,     9, OPTIONAL, XF_TEXT_MAX,    "why this agent can take no work now; empty: it is well")

#define XF_MSG_BEAT_REPLY(F, L) \
    L(ack, acks,           1, OPTIONAL, XF_ITEMS_MAX + XF_HELD_MAX, "one an item, and one for each held lease that is stale") \
    L(order, orders,       2, OPTIONAL, XF_ORDERS_MAX,   "what holds now for the jobs of the held leases, and drain") \
    F(u32, checkpoint_ms,  3, OPTIONAL, XF_MS_MAX,       "as in hello; 0: unchanged") \
    F(u32, checkpoint_max, 4, OPTIONAL, XF_CHECKPOINT_MAX, "as in hello; 0: unchanged. More than there for a fast agent")

#define XF_MSG_POLL(F, L) \
    F(u32, wait_ms, 1, OPTIONAL, XF_MS_MAX, "answer within this time; 0: the coordinator's own")

#define XF_MSG_POLL_REPLY(F, L) \
    L(order, orders, 1, OPTIONAL, XF_ORDERS_MAX, "new since the last poll; may be none")

#define XF_MSG_FIT(F, L) \
    F(str, job,         1, REQUIRED, XF_JOB_ID_MAX, "public id") \
    F(flag, ok,         2, REQUIRED, 1,             "both sides answered this agent") \
    F(u32, code,        3, OPTIONAL, XF_CODE_N - 1, "why not") \
    F(str, text,        4, OPTIONAL, XF_TEXT_MAX,   "why not, for people; no secret")

#define XF_MSG_BYE(F, L) \
    F(str, reason, 1, OPTIONAL, XF_TEXT_MAX, "for people")

/* clang-format on */

#endif
