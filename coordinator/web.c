/*
 * web.c - routes over views and metrics.
 *
 * A view's answer comes later; the request waits in `struct web_req` until then. The page is
 * static: its script writes names and keys as text, never as markup.
 */
#include "coordinator/web.h"

#include "common/base/log.h"
#include "coordinator/metrics.h"
#include "coordinator/roster.h"
#include "coordinator/views.h"

static const char type_json[] = "application/json";
static const char type_text[] = "text/plain; charset=utf-8";
static const char type_html[] = "text/html; charset=utf-8";
static const char type_metrics[] = "text/plain; version=0.0.4; charset=utf-8";

/* clang-format off */
static const char page[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>xfer</title>\n"
    "<meta name=viewport content='width=device-width'>\n"
    "<style>body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}\n"
    "h1{font-size:1.3em}table{border-collapse:collapse;width:100%;margin:0 0 2em}\n"
    "th,td{text-align:left;padding:.3em .8em .3em 0;border-bottom:1px solid #ddd;white-space:nowrap}\n"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}td.w{white-space:normal}\n"
    "progress{width:10em}.bad{color:#a00}</style>\n"
    "<h1>xfer</h1><p id=note></p>\n"
    "<table><thead><tr><th>job<th>name<th>state<th>progress<th>copied<th>failed<th>bytes<th>rate<th>left<th>reason"
    "</thead><tbody id=jobs></tbody></table>\n"
    "<table><thead><tr><th>agent<th>state<th>in flight<th>leases<th>objects/s<th>bytes/s<th>seen<th>reason"
    "</thead><tbody id=agents></tbody></table>\n"
    "<script>\n"
    "const $=i=>document.getElementById(i);\n"
    "function b(n){const u=['B','KiB','MiB','GiB','TiB','PiB'];let i=0;while(n>=1024&&i<5){n/=1024;i++}"
    "return n.toFixed(i?1:0)+' '+u[i]}\n"
    "function t(s){if(s===null)return '';const h=Math.floor(s/3600),m=Math.floor(s%3600/60);"
    "return h?h+' h '+m+' min':m?m+' min':Math.ceil(s)+' s'}\n"
    "function cell(r,x,c){const d=document.createElement('td');if(x instanceof Node)d.append(x);"
    "else d.textContent=x;if(c)d.className=c;r.append(d)}\n"
    "function job(j){const r=document.createElement('tr'),o=j.objects,p=document.createElement('progress');\n"
    "const done=o.copied+o.skipped+o.failed+o.vanished+o.archived;p.max=Math.max(o.listed,1);p.value=done;\n"
    "cell(r,j.id);cell(r,j.name,'w');cell(r,j.state+(j.state=='running'?' ('+j.phase+')':''));cell(r,p);\n"
    "cell(r,o.copied+' of '+o.listed+(j.listing.complete?'':'+'),'n');cell(r,o.failed,o.failed?'n bad':'n');\n"
    "cell(r,b(j.bytes.copied),'n');cell(r,j.rate.objects_s.toFixed(0)+'/s, '+b(j.rate.bytes_s)+'/s','n');\n"
    "cell(r,t(j.eta_s),'n');cell(r,[j.reason,j.detail].filter(Boolean).join(': '),'w');return r}\n"
    "function agent(a){const r=document.createElement('tr');cell(r,a.id);cell(r,a.state,a.state=='up'?'':'bad');\n"
    "cell(r,a.in_flight,'n');cell(r,a.leases,'n');cell(r,a.objects_s.toFixed(0),'n');cell(r,b(a.bytes_s),'n');\n"
    "cell(r,t(a.last_seen_s),'n');cell(r,a.reason||'','w');return r}\n"
    "async function look(){try{const s=await(await fetch('api/v1/jobs')).json();\n"
    "$('jobs').replaceChildren(...s.jobs.map(job));$('agents').replaceChildren(...s.agents.map(agent));\n"
    "$('note').textContent=''}catch(e){$('note').textContent='no answer from the coordinator'}\n"
    "setTimeout(look,2000)}\n"
    "look()</script></html>\n";
/* clang-format on */

static void reply_error(struct xf_httpd_req *req, int status, const char *text)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_c(j, "error", text);
    XF_AUTO_FREE char *body = xf_json_dump(j, false);
    xf_httpd_reply(req, status, type_json, xf_str_c(body));
    xf_json_free(j);
}

static void on_view(void *arg, struct xf_json *j, const struct xf_err *err)
{
    struct xf_httpd_req *req = arg;

    if (j == NULL) {
        reply_error(req, err->code == XF_E_NOT_FOUND ? 404 : 503, err->msg);
        return;
    }
    XF_AUTO_FREE char *body = xf_json_dump(j, true);
    xf_httpd_reply(req, 200, type_json, xf_str_c(body));
    xf_json_free(j);
}

static void get_page(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)arg; /* the page asks the API itself */
    (void)rest;
    xf_httpd_reply(req, 200, type_html, XF_STR_LIT(page));
}

static void get_jobs(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)rest;
    xf_views_all(arg, on_view, req);
}

static void get_job(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    xf_views_show(arg, rest, on_view, req);
}

static void get_agents(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    const struct xf_err ok = {.code = XF_OK};

    (void)rest;
    on_view(req, xf_views_agents(arg), &ok);
}

static void get_health(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)arg; /* it answers, so it lives */
    (void)rest;
    xf_httpd_reply(req, 200, type_text, XF_STR_LIT("ok\n"));
}

static void get_ready(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    const struct xf_coordinator *c = arg;

    (void)rest;
    if (c->state == XF_CORE_READY) {
        xf_httpd_reply(req, 200, type_text, XF_STR_LIT("ready\n"));
    } else {
        xf_httpd_reply(req, 503, type_text, XF_STR_LIT("not ready\n"));
    }
}

/* Gauges are taken from where they are kept, at the moment of the question. */
static void refresh_gauges(struct xf_coordinator *c)
{
    double by_state[XF_ROSTER_STATE_N] = {0};
    struct xf_store_stats store;
    struct xf_hub_stats hub;
    double ready = 0;
    double leased = 0;
    double in_flight = 0;

    XF_LIST_FOREACH (node, &c->jobs) {
        const struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        ready += j->row.tasks_ready;
        leased += j->row.tasks_leased;
    }
    XF_LIST_FOREACH (node, &c->agents) {
        const struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        by_state[xf_roster_state(c, a)]++;
        in_flight += (double)a->in_flight;
    }
    for (int i = 0; i < XF_ROSTER_STATE_N; i++) {
        const char *name = xf_roster_state_name((enum xf_roster_state)i);
        xf_cmetrics_set(c->metrics, XF_CM_AGENTS, name, by_state[i]);
    }
    xf_cmetrics_set(c->metrics, XF_CM_BATCHES, "ready", ready);
    xf_cmetrics_set(c->metrics, XF_CM_BATCHES, "leased", leased);
    xf_cmetrics_set(c->metrics, XF_CM_IN_FLIGHT, NULL, in_flight);
    xf_store_stats(c->store, &store);
    xf_cmetrics_set(c->metrics, XF_CM_STORE_BYTES, NULL, (double)store.bytes);
    xf_cmetrics_set(c->metrics, XF_CM_WAL_BYTES, NULL, (double)store.wal_bytes);
    if (c->hub != NULL) {
        xf_hub_stats(c->hub, &hub);
        xf_cmetrics_set(c->metrics, XF_CM_REPLAYED, NULL, (double)hub.replayed);
    }
}

static void get_metrics(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    struct xf_coordinator *c = arg;
    XF_AUTO_BUF text = {0};

    (void)rest;
    xf_buf_init(&text, 0);
    refresh_gauges(c);
    xf_metrics_write(c->metrics, &text);
    xf_httpd_reply(req, 200, type_metrics, xf_buf_view(&text));
}

static const struct xf_httpd_route routes[] = {
    {"/", get_page},
    {"/metrics", get_metrics},
    {"/api/v1/jobs", get_jobs},
    {"/api/v1/jobs/*", get_job},
    {"/api/v1/agents", get_agents},
    {"/healthz", get_health},
    {"/readyz", get_ready},
};

enum xf_code xf_web_open(struct xf_coordinator *c, struct xf_err *err)
{
    XF_AUTO_FREE char *listen = xf_str_dup(c->conf->http);
    const struct xf_httpd_opts o = {.loop = c->loop,
                                    .listen = listen,
                                    .routes = routes,
                                    .n_routes = XF_ARRAY_LEN(routes),
                                    .arg = c};

    XF_TRY(xf_httpd_new(&o, &c->httpd, err));
    if (!xf_httpd_is_loopback(c->httpd)) {
        XF_WARN("httpd.open_to_others",
                xf_f_c("address", xf_httpd_address(c->httpd)),
                xf_f_c("note", "names and keys can be read there by everyone who reaches it"));
    }
    return XF_OK;
}

void xf_web_close(struct xf_coordinator *c)
{
    xf_httpd_free(c->httpd);
    c->httpd = NULL;
}
