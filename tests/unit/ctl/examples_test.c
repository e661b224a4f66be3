/* examples_test.c - the daemons' configurations below examples/ are what the daemons take. */
#include "agent/agent_conf.h"
#include "coordinator/coord_conf.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

static void load(const char *name, const struct xf_conf_table *table, void *out)
{
    char path[4096];
    struct xf_conf *conf = NULL;
    struct xf_err err;
    const char *root = getenv("XF_SOURCE_DIR"); /* NOLINT(concurrency-mt-unsafe): one thread */

    assert_non_null(root);
    (void)snprintf(path, sizeof(path), "%s/examples/%s", root, name);
    if (xf_conf_load_file(table, path, out, &conf, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    xf_conf_free(conf);
}

static void the_daemons_take_their_examples(void **state)
{
    struct xf_coord_conf coordinator;
    struct xf_agent_conf agent;

    (void)state; /* nothing is shared */
    load("coordinator.toml", &xf_coord_conf_table, &coordinator);
    assert_true(coordinator.require_token);
    load("agent.toml", &xf_agent_conf_table, &agent);
    assert_true(agent.pool_bytes == UINT64_C(512) * 1024 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_daemons_take_their_examples)};
    return xf_test_run("examples", tests, NULL, NULL);
}
