/*
 * conn.h - one client connection: reads requests, has them done, writes answers. Inside the server
 * only.
 *
 * A connection belongs to one thread. States: head -> (body) -> waiting for its time -> (hashing)
 * -> writing -> head.
 */
#ifndef XF_TESTS_S3D_CONN_H
#define XF_TESTS_S3D_CONN_H

#include "common/base/list.h"
#include "common/rt/loop.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "tests/s3d/context.h"
#include "tests/s3d/req.h"

enum { S3D_SCRATCH = 256 * 1024 };

struct s3d_thread {
    struct s3d_server *server;
    struct xf_loop *loop;
    struct xf_thread thread;
    struct xf_watch listener;
    struct xf_queue *finished; /* requests whose work was done by another thread */
    struct xf_list conns;
    struct xf_buf auth_scratch;
    uint64_t ids; /* of requests */
    int64_t date_s;
    char date[XF_TIME_TEXT_MAX];
    char scratch[S3D_SCRATCH];
};

enum s3d_conn_state {
    S3D_CONN_HEAD,
    S3D_CONN_BODY,
    S3D_CONN_WAIT,
    S3D_CONN_HASH,
    S3D_CONN_AWAY, /* another thread works on it */
    S3D_CONN_WRITE,
    S3D_CONN_STALL, /* inside the answer */
    S3D_CONN_DEAF   /* inside the request's body */
};

/* Where the answer's body stands. Positions count body bytes, blanks in front included. */
struct s3d_out {
    uint64_t pos;
    uint64_t total;    /* what there is to send */
    uint64_t cut;      /* stop there; UINT64_MAX: nowhere */
    uint64_t stall;    /* pause there; UINT64_MAX: nowhere */
    uint64_t drip_end; /* pause there and go on drip_ms later */
    bool chunked;
    bool last_chunk; /* the closing chunk is in obuf */
};

struct s3d_conn {
    struct s3d_thread *thread;
    struct xf_watch watch;
    struct xf_timer timer;
    struct xf_list in_thread;
    enum s3d_conn_state state;
    struct xf_buf rbuf;
    size_t head_len;
    size_t taken;        /* bytes of rbuf behind the head that are the body's */
    struct xf_buf carry; /* bytes read past the end of a chunked body */
    uint64_t body_left;
    uint64_t body_in;
    bool discard; /* the body is read and dropped */
    bool te_on;
    struct s3d_chunked te;
    int64_t due_ms;
    struct xf_buf obuf;
    size_t opos;
    struct s3d_out out;
    uint64_t bytes_out;
    bool answered; /* the status line went out */
    bool counted;  /* s3d_count_begin was called */
    bool closed;   /* gone as far as the client knows; freed when back from away */
    struct s3d_req req;
};

/** Takes the descriptor. */
void s3d_conn_open(struct s3d_thread *t, int fd);
/** With a reset instead of an orderly end. */
void s3d_conn_close(struct s3d_conn *c, bool reset);
/** The request is answered: count it and go on with the next. */
void s3d_conn_next(struct s3d_conn *c);
/** Watch for input, output or neither. False: the connection is gone. */
bool s3d_conn_watch(struct s3d_conn *c, unsigned events);

/* dispatch.c */
/** The head is in: find out what is asked and prepare for the body. */
void s3d_dispatch_begin(struct s3d_conn *c);
/** The body is in, or dropped. */
void s3d_dispatch_body_done(struct s3d_conn *c);
/** The time has come, or another step of a hash. */
void s3d_dispatch_run(struct s3d_conn *c);
/** The answer is in c->req.resp: send it. */
void s3d_dispatch_answer(struct s3d_conn *c);

/* write.c */
/** Begin to send c->req.resp. May end or free the connection. */
void s3d_write_begin(struct s3d_conn *c);
/** Go on: output is possible, or a pause is over. */
void s3d_write_more(struct s3d_conn *c);

/* admin.c */
/** An admin request whose body is in r->small. True: the answer is there; false: another thread
 * makes it. */
bool s3d_admin_handle(struct s3d_req *r, struct s3d_conn *c);

#endif
