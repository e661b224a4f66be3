/* main.c - the command line of s3d. */
#include "common/rt/loop.h"
#include "tests/s3d/server.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const char help[] =
    "usage: s3d [OPTIONS]\n"
    "An S3 server for tests: in memory, strict about signatures, misbehaving on demand.\n"
    "\n"
    "  --listen ADDR:PORT      default 127.0.0.1:0 (any port, printed)\n"
    "  --ready-fd N            write \"ready PORT\" to descriptor N when it serves\n"
    "  --threads N             event loops, default 2\n"
    "  --key AKID:SECRET[:TOKEN][:ro]\n"
    "                          an access key (repeat for more); ro: may only read\n"
    "  --no-auth               take unsigned and wrongly signed requests\n"
    "  --region R              refuse other regions in signatures\n"
    "  --domain NAME           virtual-host style BUCKET.NAME beside path style\n"
    "  --bucket NAME           an empty bucket (repeat for more)\n"
    "  --synth BUCKET:COUNT:SIZE:PATTERN[:seed=N][:part=SIZE][:prefix=P]\n"
    "                          made-up objects; SIZE as 1KiB or 0-4KiB; PATTERN is one of\n"
    "                          flat hex dirs dates skew long utf-8\n"
    "  --object BUCKET/KEY:SIZE[:part=SIZE]\n"
    "                          one made-up object of any size\n"
    "  --true-etag-max SIZE    larger made-up objects have ETags that are no MD5 (default 1GiB)\n"
    "  --max-object SIZE       refuse larger objects with EntityTooLarge (default: S3's limit)\n"
    "  --discard               keep sizes and digests of what is written, not the bytes\n"
    "  --latency OP=MS,...     modelled time: get=20,put=40,copy=40,list=60,default=0\n"
    "  --prefix-rps N[:read=N][:write=N][:segments=K][:burst=N]\n"
    "                          503 SlowDown above N requests a second for a prefix\n"
    "  --copy-rate SIZE        modelled bytes a second of one copy\n"
    "  --fault-rate 503=P,reset=P,truncate=P,copy200err=P,stall=P\n"
    "                          random faults, in percent of requests\n"
    "  --seed N                seed of random faults and ids, default 1\n"
    "  --complete-idempotent   a repeated CompleteMultipartUpload succeeds\n"
    "  --clock-offset S        the server's clock is S seconds ahead\n"
    "  --log-requests N        keep the last N requests for GET /-/requests\n"
    "  --quiet                 print nothing when it serves\n"
    "\n"
    "example: s3d --synth src:100000:1KiB:dirs --bucket dst --key AK:SK --latency default=20\n"
    "Rules, counters, dumps and comparisons are under /-/ on the same port: see README.md beside\n"
    "the source. SIGTERM ends it.\n";

enum opt_id {
    OPT_LISTEN = 256,
    OPT_READY_FD,
    OPT_THREADS,
    OPT_KEY,
    OPT_NO_AUTH,
    OPT_REGION,
    OPT_DOMAIN,
    OPT_BUCKET,
    OPT_SYNTH,
    OPT_OBJECT,
    OPT_TRUE_ETAG_MAX,
    OPT_MAX_OBJECT,
    OPT_DISCARD,
    OPT_LATENCY,
    OPT_PREFIX_RPS,
    OPT_COPY_RATE,
    OPT_FAULT_RATE,
    OPT_SEED,
    OPT_COMPLETE_IDEMPOTENT,
    OPT_CLOCK_OFFSET,
    OPT_LOG_REQUESTS,
    OPT_QUIET,
    OPT_HELP
};

static const struct option options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"ready-fd", required_argument, NULL, OPT_READY_FD},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"key", required_argument, NULL, OPT_KEY},
    {"no-auth", no_argument, NULL, OPT_NO_AUTH},
    {"region", required_argument, NULL, OPT_REGION},
    {"domain", required_argument, NULL, OPT_DOMAIN},
    {"bucket", required_argument, NULL, OPT_BUCKET},
    {"synth", required_argument, NULL, OPT_SYNTH},
    {"object", required_argument, NULL, OPT_OBJECT},
    {"true-etag-max", required_argument, NULL, OPT_TRUE_ETAG_MAX},
    {"max-object", required_argument, NULL, OPT_MAX_OBJECT},
    {"discard", no_argument, NULL, OPT_DISCARD},
    {"latency", required_argument, NULL, OPT_LATENCY},
    {"prefix-rps", required_argument, NULL, OPT_PREFIX_RPS},
    {"copy-rate", required_argument, NULL, OPT_COPY_RATE},
    {"fault-rate", required_argument, NULL, OPT_FAULT_RATE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"complete-idempotent", no_argument, NULL, OPT_COMPLETE_IDEMPOTENT},
    {"clock-offset", required_argument, NULL, OPT_CLOCK_OFFSET},
    {"log-requests", required_argument, NULL, OPT_LOG_REQUESTS},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool add_text(const char **list, size_t *n, const char *text)
{
    if (*n == S3D_TEXTS_MAX) {
        return false;
    }
    list[(*n)++] = text;
    return true;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
    return xf_str_u64(xf_str_c(text), out) && *out <= max;
}

/* Options that hold a text or a switch. */
static bool take_text(struct s3d_opts *o, int id, const char *arg)
{
    switch ((enum opt_id)id) {
    case OPT_LISTEN: o->listen = arg; return true;
    case OPT_KEY: return add_text(o->keys, &o->n_keys, arg);
    case OPT_NO_AUTH: o->no_auth = true; return true;
    case OPT_REGION: o->region = arg; return true;
    case OPT_DOMAIN: o->domain = arg; return true;
    case OPT_BUCKET: return add_text(o->buckets, &o->n_buckets, arg);
    case OPT_SYNTH: return add_text(o->synths, &o->n_synths, arg);
    case OPT_OBJECT: return add_text(o->objects, &o->n_objects, arg);
    case OPT_DISCARD: o->discard = true; return true;
    case OPT_LATENCY: o->latency = arg; return true;
    case OPT_PREFIX_RPS: o->prefix_rps = arg; return true;
    case OPT_COPY_RATE: o->copy_rate = arg; return true;
    case OPT_FAULT_RATE: o->fault_rate = arg; return true;
    case OPT_COMPLETE_IDEMPOTENT: o->complete_idempotent = true; return true;
    case OPT_QUIET: o->quiet = true; return true;
    case OPT_READY_FD:
    case OPT_THREADS:
    case OPT_TRUE_ETAG_MAX:
    case OPT_MAX_OBJECT:
    case OPT_SEED:
    case OPT_CLOCK_OFFSET:
    case OPT_LOG_REQUESTS:
    case OPT_HELP: break;
    }
    return false;
}

static bool take_number(struct s3d_opts *o, int id, const char *arg)
{
    uint64_t v = 0;
    int64_t i = 0;

    if (id == OPT_READY_FD && number(arg, 1 << 20, &v)) {
        o->ready_fd = (int)v;
    } else if (id == OPT_THREADS && number(arg, S3D_THREADS_MAX, &v)) {
        o->threads = (unsigned)v;
    } else if (id == OPT_SEED && number(arg, UINT64_MAX, &v)) {
        o->seed = v;
    } else if (id == OPT_LOG_REQUESTS && number(arg, 10000000, &v)) {
        o->log_requests = v;
    } else if (id == OPT_TRUE_ETAG_MAX && s3d_size_parse(xf_str_c(arg), &v)) {
        o->true_etag_max = v;
    } else if (id == OPT_MAX_OBJECT && s3d_size_parse(xf_str_c(arg), &v)) {
        o->max_object = v;
    } else if (id == OPT_CLOCK_OFFSET && xf_str_i64(xf_str_c(arg), &i) && i > -INT32_MAX &&
               i < INT32_MAX) {
        o->clock_offset_ms = i * 1000;
    } else {
        return false;
    }
    return true;
}

/* 0: go on; 1: help was asked for; 2: wrong. */
static int parse_args(int argc, char **argv, struct s3d_opts *o)
{
    int id;
    int index = 0;

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet */
    while ((id = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (id == OPT_HELP) {
            (void)fputs(help, stdout);
            return 1;
        }
        if (id == '?') {
            return 2; /* getopt said what is wrong */
        }
        if (!take_text(o, id, optarg) && !take_number(o, id, optarg)) {
            (void)fprintf(
                stderr, "s3d: bad value of --%s: '%s' (see --help)\n", options[index].name, optarg);
            return 2;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "s3d: unexpected argument '%s' (see --help)\n", argv[optind]);
        return 2;
    }
    if (o->n_keys == 0 && !o->no_auth) {
        (void)fputs("s3d: no access key: give --key AKID:SECRET, or --no-auth\n", stderr);
        return 2;
    }
    return 0;
}

static void on_signal(void *arg, int signo)
{
    (void)signo; /* each of them ends the server */
    xf_loop_stop(arg);
}

static bool tell_ready(const struct s3d_server *s)
{
    char line[32];

    if (!s->opts.quiet) {
        (void)printf("s3d: listening on http://%s\n", s->address);
        (void)fflush(stdout);
    }
    if (s->opts.ready_fd < 0) {
        return true;
    }
    int n = snprintf(line, sizeof(line), "ready %u\n", (unsigned)s->port);
    bool ok = write(s->opts.ready_fd, line, (size_t)n) == n;
    if (!ok) {
        (void)fprintf(stderr, "s3d: cannot write to descriptor %d\n", s->opts.ready_fd);
    }
    return close(s->opts.ready_fd) == 0 && ok;
}

static enum xf_code serve(const struct s3d_opts *o, struct xf_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, 0};
    struct xf_loop *loop_new;
    struct s3d_server *server_new;

    XF_TRY(xf_loop_new(NULL, &loop_new, err));
    XF_AUTO(xf_loop) loop = loop_new;
    XF_TRY(xf_loop_signals(loop, signals, on_signal, loop, err));
    XF_TRY(s3d_server_new(o, &server_new, err));
    XF_AUTO(s3d_server) server = server_new;
    if (!tell_ready(server)) {
        return XF_FAIL(err, XF_E_IO, "cannot tell that the server is ready");
    }
    xf_loop_run(loop);
    return XF_OK;
}

/* Thousands of clients at a time: as many descriptors as we may have. */
static void raise_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r); /* fewer clients then */
    }
}

int main(int argc, char **argv)
{
    struct s3d_opts o;
    struct xf_err err;

    s3d_opts_init(&o);
    int rc = parse_args(argc, argv, &o);
    if (rc != 0) {
        return rc == 1 ? EXIT_SUCCESS : 2;
    }
    raise_limits();
    xf_err_clear(&err);
    if (serve(&o, &err) != XF_OK) {
        (void)fprintf(stderr, "s3d: %s\n", err.msg);
        return 2;
    }
    return EXIT_SUCCESS;
}
