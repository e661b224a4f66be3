/*
 * limits.h - sizes and enumerations of the protocol that code beside the codec needs too.
 *
 * Numbers here are on the wire or in the store: enumerations are append-only.
 */
#ifndef XF_PROTO_LIMITS_H
#define XF_PROTO_LIMITS_H

#include "proto/manifest.h"
#include "proto/pack.h"
#include "proto/result.h"

#include <stdint.h>

enum {
    XF_PROTO_VERSION = 1,
    XF_MSG_MAX = 16 * 1024 * 1024, /* bytes of one message on the wire */
    XF_INSTANCE_LEN = 16,          /* random bytes that name one process state directory */
    XF_TOKEN_MAX = 256,
    XF_TEXT_MAX = 512,
    XF_AGENT_ID_MAX = 128,
    XF_VERSION_MAX = 64,
    XF_HOST_MAX = 255,
    XF_JOB_ID_MAX = 64,
    XF_SUBMIT_KEY_MAX = 64,
    XF_SPEC_MAX = 1024 * 1024,
    XF_JSON_MAX = 8 * 1024 * 1024,
    XF_CHUNK_MAX = 15 * 1024 * 1024, /* holds the lines of 1,000 objects at their longest */
    XF_CURSOR_MAX = 512,
    XF_UPLOAD_ID_MAX = 1024,
    XF_PART_NO_MAX = 10000,
    XF_CRC_LEN = 4,
    XF_PART_SUM_MAX = 32, /* bytes of a checksum */
    XF_SUM_KIND_MAX = 255,
    XF_DIGEST_MAX = 64,
    XF_TASKS_MAX = 64,        /* tasks in one lease reply */
    XF_TASK_PARTS_MAX = 1024, /* parts reported in one item */
    XF_ITEMS_MAX = 1024,      /* items in one beat */
    XF_CHECKPOINT_MAX = 4000, /* outcomes that wait at an agent, however fast it is */
    XF_HELD_MAX = 4096,       /* leases of one agent */
    XF_ORDERS_MAX = 1024,
    XF_NOTICES_MAX = 16,
    XF_NOTICE_CODE_MAX = 64,
    XF_FILTER_MAX = 64,
    XF_TUNE_VALUE_MAX = 512,
    XF_MS_MAX = 86400000
};

/* What a lease is for. Numbers are stored too. */
enum xf_task_kind {
    XF_TASK_BATCH = 1, /* a manifest of small objects */
    XF_TASK_RECHECK,   /* the manifest of an ended batch again: compare, repair */
    XF_TASK_OPEN,      /* an upload: look at the source, CreateMultipartUpload */
    XF_TASK_PARTS,     /* a range of its parts */
    XF_TASK_CLOSE,     /* complete and verify it */
    XF_TASK_ABORT,     /* abort it until ListParts says 404 */
    XF_TASK_KIND_N
};
#define XF_TASK_BIT(kind) (UINT32_C(1) << (kind))
#define XF_TASK_ALL       (XF_TASK_BIT(XF_TASK_KIND_N) - 2)

/* What an item of a beat says about its task. */
enum xf_item_kind {
    XF_ITEM_CHECKPOINT = 0, /* progress; the lease goes on */
    XF_ITEM_DONE,           /* the lease ends: every object has an outcome, every part is there */
    XF_ITEM_OPENED,         /* upload id made: part 1 waits for the acknowledgement */
    XF_ITEM_GIVE_BACK,      /* the lease ends before the work did, see enum xf_how */
    XF_ITEM_FAILED,         /* the upload's object failed, with code and text */
    XF_ITEM_N
};

/* How an attempt at a task ended. Messages carry DRAINED, EXPIRED, UNFIT,
 * FAILED and STOPPED; stored too. */
enum xf_how {
    XF_HOW_RUNNING = 0,
    XF_HOW_DONE,
    XF_HOW_DRAINED, /* given back in good order: the agent stops or was told to drain */
    XF_HOW_LOST,    /* the agent's process died or its session did */
    XF_HOW_EXPIRED, /* the lease ran out */
    XF_HOW_UNFIT,   /* the agent's own trouble (credentials, DNS, disk); no attempt is spent */
    XF_HOW_FAILED,  /* the work failed, told in code and text; another attempt may do */
    XF_HOW_ENDED,   /* the upload failed */
    XF_HOW_STOPPED, /* by an order: job paused or cancelled */
    XF_HOW_N
};

/* Orders state what holds from now on: a repeated one changes nothing. */
enum xf_order_kind {
    XF_ORDER_RUN = 0, /* the job runs; in_flight, bandwidth and mode hold for it */
    XF_ORDER_PAUSE,   /* no new S3 request for the job; leases stay */
    XF_ORDER_CANCEL,  /* stop the job's requests, give its leases back as stopped */
    XF_ORDER_DRAIN,   /* take no new task; give back what is not started */
    XF_ORDER_UNDRAIN,
    XF_ORDER_DROP_TASK, /* one task is no longer yours: stop it; when a batch had begun, give it
                         * back as expired, which is how its late writes are looked at again */
    XF_ORDER_N
};

enum xf_control_verb {
    XF_CONTROL_PAUSE = 0,
    XF_CONTROL_RESUME,
    XF_CONTROL_CANCEL,
    XF_CONTROL_RETRY,
    XF_CONTROL_N
};

enum xf_report_format { XF_REPORT_CSV = 0, XF_REPORT_JSON, XF_REPORT_FORMAT_N };
enum xf_report_only { XF_REPORT_ALL = 0, XF_REPORT_FAILED, XF_REPORT_ONLY_N };

/* One request at a time is open on each channel of a session. */
enum xf_channel {
    XF_CHANNEL_CTL = 0,
    XF_CHANNEL_BEAT,
    XF_CHANNEL_LEASE,
    XF_CHANNEL_POLL,
    XF_CHANNEL_N
};

/* Who may send a request. */
enum xf_role { XF_ROLE_NONE = 0, XF_ROLE_AGENT, XF_ROLE_OPERATOR };

#endif
