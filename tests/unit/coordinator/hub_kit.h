/*
 * hub_kit.h - a hub on a fake clock whose bus and coordinator are the test's, and agents that send.
 */
#ifndef XF_UNIT_COORDINATOR_HUB_KIT_H
#define XF_UNIT_COORDINATOR_HUB_KIT_H

#include "coordinator/hub.h"
#include "proto/codec.h"
#include "tests/lib/fakeclock.h"

enum { TOKENS_MAX = 4096, REQS_MAX = 256, STEP_MS = 500 };

/* What became of a token. */
struct answer {
    struct xf_buf bytes;
    int replies;
    int drops;
};

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_hub *hub;
    struct answer answers[TOKENS_MAX];
    uint64_t n_tokens;
    bool hold; /* requests wait in reqs until the test answers */
    bool refuse_hello;
    struct xf_hub_req *reqs[REQS_MAX];
    size_t n_reqs;
    uint64_t handed; /* requests that reached the coordinator's side */

    int hellos, gones, byes;
    enum xf_hub_gone why;
};

struct agent {
    unsigned char instance[XF_INSTANCE_LEN];
    const char *id;
    uint64_t session;
    uint64_t seq[XF_CHANNEL_N];
};
static const struct xf_msg_lease any_lease = {.free_tasks = 1, .free_objects = 1000};

static const struct xf_msg_poll any_poll = {.wait_ms = 0};

/* loop, bus, events and arg of `more` are filled in; NULL: all defaults. */
struct fx *fx_open(const struct xf_hub_opts *more);
void fx_close(struct fx *f);
void pass_ms(struct fx *f, int64_t ms);
uint64_t post(struct fx *f, struct xf_str bytes);
void request_bytes(const struct agent *a,
                   enum xf_kind kind,
                   uint64_t seq,
                   const char *token,
                   const void *m,
                   struct xf_buf *out);
uint64_t send_as(struct fx *f,
                 const struct agent *a,
                 enum xf_kind kind,
                 uint64_t seq,
                 const char *token,
                 const void *m);
uint64_t send_next(struct fx *f, struct agent *a, enum xf_kind kind, const void *m);
enum xf_code code_of(struct fx *f, uint64_t token);
void body_of(struct fx *f, uint64_t token, enum xf_kind kind, struct xf_arena *arena, void *m);
uint64_t try_hello(struct fx *f, struct agent *a, uint64_t nonce, const char *token);
void hello(struct fx *f, struct agent *a, uint64_t nonce);
bool same_bytes(struct fx *f, uint64_t a, uint64_t b);
struct xf_hub_stats stats(struct fx *f);

#endif
