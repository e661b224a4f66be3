/*
 * schema_operator.h - the tables of what xferctl sends and gets; the form is told in schema.h.
 */
#ifndef XF_PROTO_SCHEMA_OPERATOR_H
#define XF_PROTO_SCHEMA_OPERATOR_H

/* clang-format off */

/* ---- operator ---- */

#define XF_MSG_SUBMIT(F, L) \
    F(str, key,      1, REQUIRED, XF_SUBMIT_KEY_MAX, "made by the client: a repeated submit is one job") \
    F(str, toml,     2, REQUIRED, XF_SPEC_MAX,       "migrate.toml") \
    F(flag, dry_run, 3, OPTIONAL, 1,                 "check and probe only, make no job")

#define XF_MSG_SUBMIT_REPLY(F, L) \
    F(str, job,  1, OPTIONAL, XF_JOB_ID_MAX, "public id; empty after a dry run") \
    F(str, json, 2, OPTIONAL, XF_JSON_MAX,   "what was checked, for people and scripts")

#define XF_MSG_QUERY(F, L) \
    F(str, job,   1, OPTIONAL, XF_JOB_ID_MAX, "public id; empty: all, where that has a meaning") \
    F(i64, after, 2, OPTIONAL, INT64_MAX,     "list: `next` of the last page; 0: the newest jobs")

#define XF_MSG_JSON(F, L) \
    F(str, json, 1, REQUIRED, XF_JSON_MAX, "as `xferctl --json` prints it")

#define XF_MSG_CONTROL(F, L) \
    F(str, job,  1, REQUIRED, XF_JOB_ID_MAX,    "public id") \
    F(u32, verb, 2, REQUIRED, XF_CONTROL_N - 1, "0 pause, 1 resume, 2 cancel, 3 retry") \
    F(str, cls,  3, OPTIONAL, XF_FILTER_MAX,    "retry: only failures of this code")

#define XF_MSG_REPORT(F, L) \
    F(str, job,    1, REQUIRED, XF_JOB_ID_MAX,          "public id") \
    F(u32, format, 2, REQUIRED, XF_REPORT_FORMAT_N - 1, "0 csv, 1 json") \
    F(u32, only,   3, OPTIONAL, XF_REPORT_ONLY_N - 1,   "0 every object, 1 failed ones") \
    F(bin, cursor, 4, OPTIONAL, XF_CURSOR_MAX,          "from the last reply; empty: from the start")

#define XF_MSG_REPORT_REPLY(F, L) \
    F(bin, chunk,  1, OPTIONAL, XF_CHUNK_MAX,  "the next bytes of the report") \
    F(bin, cursor, 2, OPTIONAL, XF_CURSOR_MAX, "for the next request") \
    F(flag, end,   3, OPTIONAL, 1,             "nothing follows")

#define XF_MSG_DRAIN(F, L) \
    F(str, agent, 1, REQUIRED, XF_AGENT_ID_MAX, "name of the agent") \
    F(flag, on,   2, REQUIRED, 1,               "drain, or take work again")

#define XF_MSG_TUNE(F, L) \
    F(str, job,   1, OPTIONAL, XF_JOB_ID_MAX, "public id; empty: the coordinator") \
    F(str, key,   2, OPTIONAL, XF_FILTER_MAX, "setting; empty: none is set, only told") \
    F(str, value, 3, OPTIONAL, XF_TUNE_VALUE_MAX, "as written in migrate.toml; \"default\": as the file says")

#define XF_MSG_PRUNE(F, L) \
    F(str, job,           1, OPTIONAL, XF_JOB_ID_MAX, "public id; empty: every job that has ended") \
    F(i64, older_than_ms, 2, OPTIONAL, INT64_MAX,     "only those that ended that long ago or longer") \
    F(flag, dry_run,      3, OPTIONAL, 1,             "only tell which they are")

/* clang-format on */

#endif
