/*
 * schema.h - every message as a table of its fields: struct, encoding, bounds, log form and the
 * tables of PROTOCOL.md all come from here and from schema_agent.h and schema_operator.h.
 *
 *   F(type, name, key, presence, cap, text)     u32 u64 i64 f64: cap is the largest value;
 *                                               str bin: most bytes; flag: 1
 *   L(message, name, key, presence, cap, text)  a list of at most cap messages
 *
 * Keys are never used again for another thing. An OPTIONAL field that is zero or empty is not sent.
 * Only msg.h and msg.c include this file.
 */
#ifndef XF_PROTO_SCHEMA_H
#define XF_PROTO_SCHEMA_H

#include "proto/schema_agent.h"
#include "proto/schema_operator.h"

/* clang-format off */

/* ---- envelopes ---- */

#define XF_MSG_REQUEST(F, L) \
    F(u32, ver,      1, REQUIRED, UINT32_MAX,      "version of the protocol") \
    F(u32, kind,     2, REQUIRED, UINT32_MAX,      "kind of request, see the table of kinds") \
    F(bin, instance, 3, OPTIONAL, XF_INSTANCE_LEN, "agents: names the state directory of the process") \
    F(u64, session,  4, OPTIONAL, UINT64_MAX,      "agents: from the reply to hello; 0 in hello") \
    F(u32, channel,  5, OPTIONAL, XF_CHANNEL_N - 1, "agents: 0 ctl, 1 beat, 2 lease, 3 poll") \
    F(u64, seq,      6, OPTIONAL, UINT64_MAX,      "agents: counts the requests of the channel, from 1") \
    F(secret, token, 7, OPTIONAL, XF_TOKEN_MAX,    "proves the role: in hello, and in each request of an operator") \
    F(bin, body,     8, OPTIONAL, XF_MSG_MAX,      "the request's own message")

#define XF_MSG_REPLY(F, L) \
    F(u32, ver,  1, REQUIRED, UINT32_MAX,  "version of the protocol") \
    F(u32, kind, 2, REQUIRED, UINT32_MAX,  "kind of the request") \
    F(u32, code, 3, REQUIRED, UINT32_MAX,  "0 for success, else a code of common/base/err.h") \
    F(str, text, 4, OPTIONAL, XF_TEXT_MAX, "for people, when code is not 0") \
    F(bin, body, 5, OPTIONAL, XF_MSG_MAX,  "the reply's own message, when code is 0")

#define XF_MSG_EMPTY(F, L) \
    F(u32, nothing, 1, OPTIONAL, 0, "always 0")

/* Every table: X(name, table). */
#define XF_MSG_ALL(X) \
    X(request, XF_MSG_REQUEST) X(reply, XF_MSG_REPLY) \
    X(held, XF_MSG_HELD) X(part, XF_MSG_PART) X(task, XF_MSG_TASK) X(item, XF_MSG_ITEM) \
    X(ack, XF_MSG_ACK) X(order, XF_MSG_ORDER) X(notice, XF_MSG_NOTICE) \
    X(hello, XF_MSG_HELLO) X(hello_reply, XF_MSG_HELLO_REPLY) \
    X(lease, XF_MSG_LEASE) X(lease_reply, XF_MSG_LEASE_REPLY) \
    X(job, XF_MSG_JOB) X(job_reply, XF_MSG_JOB_REPLY) \
    X(beat, XF_MSG_BEAT) X(beat_reply, XF_MSG_BEAT_REPLY) \
    X(poll, XF_MSG_POLL) X(poll_reply, XF_MSG_POLL_REPLY) \
    X(fit, XF_MSG_FIT) X(bye, XF_MSG_BYE) \
    X(submit, XF_MSG_SUBMIT) X(submit_reply, XF_MSG_SUBMIT_REPLY) \
    X(query, XF_MSG_QUERY) X(json, XF_MSG_JSON) X(control, XF_MSG_CONTROL) \
    X(report, XF_MSG_REPORT) X(report_reply, XF_MSG_REPORT_REPLY) \
    X(drain, XF_MSG_DRAIN) X(tune, XF_MSG_TUNE) X(prune, XF_MSG_PRUNE) \
    X(empty, XF_MSG_EMPTY)

/* The kinds of request: X(NAME, number, role, channel, request's message, reply's message). */
#define XF_KINDS(X) \
    X(HELLO,   1,  AGENT,    CTL,   hello,   hello_reply) \
    X(LEASE,   2,  AGENT,    LEASE, lease,   lease_reply) \
    X(JOB,     3,  AGENT,    CTL,   job,     job_reply) \
    X(BEAT,    4,  AGENT,    BEAT,  beat,    beat_reply) \
    X(POLL,    5,  AGENT,    POLL,  poll,    poll_reply) \
    X(FIT,     6,  AGENT,    CTL,   fit,     empty) \
    X(BYE,     7,  AGENT,    CTL,   bye,     empty) \
    X(SUBMIT,  20, OPERATOR, CTL,   submit,  submit_reply) \
    X(STATUS,  21, OPERATOR, CTL,   query,   json) \
    X(LIST,    22, OPERATOR, CTL,   query,   json) \
    X(SHOW,    23, OPERATOR, CTL,   query,   json) \
    X(AGENTS,  24, OPERATOR, CTL,   query,   json) \
    X(CONTROL, 25, OPERATOR, CTL,   control, json) \
    X(REPORT,  26, OPERATOR, CTL,   report,  report_reply) \
    X(DRAIN,   27, OPERATOR, CTL,   drain,   json) \
    X(VERSION, 28, OPERATOR, CTL,   query,   json) \
    X(EXPLAIN, 29, OPERATOR, CTL,   query,   json) \
    X(TUNE,    30, OPERATOR, CTL,   tune,    json) \
    X(PRUNE,   31, OPERATOR, CTL,   prune,   json)

/* clang-format on */

#endif
