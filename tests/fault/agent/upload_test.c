/* upload_test.c - large objects: opened, copied in parts, completed, proved, aborted. */
#include "common/base/clock.h"
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define SERVER "[copy]\nif_exists = \"overwrite\"\npart_size = \"5MiB\"\n"
#define RELAY  SERVER "mode = \"relay\"\n"
/* 3 x 5 MiB + 10 */
#define BIG "{\"bucket\":\"src\",\"key\":\"big\",\"size\":15728650,\"seed\":4}"

static const char *const modes[] = {SERVER, RELAY};

static void large_objects_go_in_parts_either_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig rig;
        rig_open(&rig, i == 2, modes[i % 2], NULL);
        rig_put(&rig, 0, BIG);
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.n_parts, 4);
        assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_COPIED);
        assert_int_equal(rig.upload.r.mode, i == 0 ? XF_MODE_SERVER : XF_MODE_RELAY);
        assert_true(rig.upload.r.level >= XF_LEVEL_SIZE);
        assert_int_equal(rig_open_uploads(&rig), 0);
        assert_true(i != 0 || rig_count(&rig, 0, "GetObject") == 0);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void parts_above_a_slot_are_streamed(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, "[copy]\nif_exists = \"overwrite\"\npart_size = \"20MiB\"\n", NULL);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":50000000,\"seed\":4}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig.n_parts, 3);
    assert_int_equal(rig.parts[0].sum.alg, XF_SUM_CRC64NVME);
    assert_int_equal(rig.upload.r.level, XF_LEVEL_ETAG);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void the_layout_of_the_source_is_kept(void **state)
{
    (void)state;
    static const char *const args[] = {"--object", "src/big:17MiB:part=6MiB", NULL};
    struct rig rig;

    rig_open(&rig, false, SERVER, args);
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig.opened.part_size, 6 << 20);
    assert_int_equal(rig.upload.r.level, XF_LEVEL_ETAG); /* equal to the source's */
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void finished_parts_are_never_sent_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, BIG);
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
        struct xf_work *w = rig_step(&rig, XF_TASK_PARTS, "big", 1);
        w->last_part = 2;
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig.n_parts, 2);
        /* another agent takes the whole range, told of the two */
        w = rig_step(&rig, XF_TASK_PARTS, "big", 2);
        w->parts = rig.parts;
        w->n_done_parts = 2;
        struct xf_work_part first[2] = {rig.parts[0], rig.parts[1]};
        w->parts = first;
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig.n_parts, 4);
        assert_int_equal(rig_count(&rig, 1, i == 0 ? "UploadPartCopy" : "UploadPart"), 4);
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_CLOSE, "big", 1)), XF_WORK_DONE);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c003_complete_is_never_sent_without_every_part(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"big\",\"body\":\"the old version\"}");
    rig_faults(&rig,
               "[{\"op\":\"UploadPartCopy\",\"query\":\"partNumber=2\",\"action\":{\"status\":500,"
               "\"code\":\"InternalError\"}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
    assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_FAILED);
    assert_int_equal(rig.upload.r.code, XF_E_SERVER);
    assert_non_null(strstr(rig.upload.message, "part 2"));
    assert_true((rig.upload.r.flags & XF_RESULT_RETRYABLE) != 0);
    rig_no_faults(&rig);
    /* and the close step itself refuses to go without it */
    rig.n_parts = 0;
    struct xf_work *w = rig_step(&rig, XF_TASK_CLOSE, "big", 1);
    struct xf_work_part parts[4] = {{0}};
    for (uint32_t i = 0; i < 4; i++) {
        parts[i].part_no = i + 1;
        parts[i].etag = XF_STR_LIT("5d41402abc4b2a76b9719d911017c592");
        parts[i].size = i == 1 ? 1 : 5242880;
    }
    w->parts = parts;
    w->n_done_parts = 4;
    assert_int_equal(rig_run(&rig, w), XF_WORK_FAILED);
    assert_int_equal(rig_count(&rig, 0, "CompleteMultipartUpload"), 0);
    assert_int_equal(rig_dst_size(&rig, "big"), 15);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 0);
    rig_close(&rig);
}

static void c003_a_part_that_is_late_is_waited_for(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    rig_faults(&rig,
               "[{\"op\":\"UploadPartCopy\",\"query\":\"partNumber=2\",\"count\":3,\"action\":{"
               "\"status\":500,\"code\":\"InternalError\"}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c004_a_source_that_changes_is_never_mixed(void **state)
{
    (void)state;
    static const char *const faults[] = {
        /* honoured and ignored conditions */
        "[{\"op\":[\"UploadPartCopy\",\"GetObject\"],\"nth\":3,\"count\":1,\"action\":{\"put\":{"
        "\"bucket\":\"src\",\"key\":\"big\",\"size\":15728650,\"seed\":77}}}]",
        "[{\"op\":[\"UploadPartCopy\",\"GetObject\"],\"nth\":3,\"count\":1,\"action\":{\"put\":{"
        "\"bucket\":\"src\",\"key\":\"big\",\"size\":15728650,\"seed\":77},\"ignore_conditions\":"
        "true}},{\"op\":[\"UploadPartCopy\",\"GetObject\"],\"action\":{\"ignore_conditions\":true}}"
        "]",
    };
    for (size_t i = 0; i < 4; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i % 2], NULL);
        rig_put(&rig, 0, BIG);
        rig_faults(&rig, faults[i / 2]);
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
        assert_int_equal(rig.upload.r.code, XF_E_CHANGED);
        assert_true((rig.upload.r.flags & XF_RESULT_RETRYABLE) != 0);
        assert_int_equal(rig_dst_size(&rig, "big"), UINT64_MAX);
        if (i < 2) { /* found by the condition that each part carries, not only at the end */
            const char *read = i == 0 ? "UploadPartCopy" : "GetObject";
            assert_true(rig_count_status(&rig, 0, read, "412") > 0);
        }
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_DONE);
        rig_no_faults(&rig);
        /* planned again from what is there now */
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        rig_must_be_equal(&rig, true);
        assert_int_equal(rig_open_uploads(&rig), 0);
        rig_close(&rig);
    }
}

static void c005_large_objects_keep_their_attributes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig,
                0,
                "{\"bucket\":\"src\",\"key\":\"big\",\"size\":12582912,\"seed\":4,\"headers\":{"
                "\"Content-Type\":\"video/mp4\",\"Cache-Control\":\"max-age=123456\","
                "\"Content-Disposition\":\"attachment; filename=\\\"a b.mp4\\\"\","
                "\"Content-Language\":\"de\",\"Expires\":\"Thu, 01 Dec 2044 16:00:00 GMT\","
                "\"x-amz-meta-k\":\"v\"},\"redirect\":\"/z\",\"storage_class\":\"STANDARD_IA\","
                "\"tags\":\"team=x&b=%26\"}");
        struct xf_work *w = rig_step(&rig, XF_TASK_OPEN, "big", 1);
        w->manifest.objects[0].storage_class = XF_STR_LIT("STANDARD_IA");
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_PARTS, "big", 1)), XF_WORK_DONE);
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_CLOSE, "big", 1)), XF_WORK_DONE);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c006_large_objects_lose_or_fail_by_denied_tags_as_asked(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, i == 0 ? SERVER : SERVER "tags = \"required\"\n", NULL);
        rig_put(
            &rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":12582912,\"tags\":\"team=x\"}");
        rig_faults(&rig,
                   "[{\"op\":\"GetObjectTagging\",\"action\":{\"status\":403,\"code\":"
                   "\"AccessDenied\"}}]");
        enum xf_work_how how = rig_upload(&rig, "big");
        assert_int_equal(how, i == 0 ? XF_WORK_DONE : XF_WORK_FAILED);
        if (i == 0) {
            assert_true((rig.opened.flags & XF_RESULT_TAGS_DROPPED) != 0);
            rig_must_be_equal(&rig, false);
        } else {
            assert_int_equal(rig.upload.r.code, XF_E_DENIED);
            assert_int_equal(rig_open_uploads(&rig), 0);
        }
        rig_close(&rig);
    }
}

static void c008_parts_that_cannot_be_copied_are_relayed(void **state)
{
    (void)state;
    static const char *const actions[] = {
        "{\"status\":501,\"code\":\"NotImplemented\"}",
        "{\"status\":400,\"code\":\"InvalidRequest\"}",
        "{\"ignore_copy_source\":true}", /* C001, variant B */
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(actions); i++) {
        char json[160];
        struct rig rig;
        rig_open(&rig, false, SERVER, NULL);
        rig_put(&rig, 0, BIG);
        (void)snprintf(
            json, sizeof(json), "[{\"op\":\"UploadPartCopy\",\"action\":%s}]", actions[i]);
        rig_faults(&rig, json);
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.n_notices, i == 1 ? 0 : 1);
        assert_int_equal(rig.upload.r.mode, XF_MODE_RELAY);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c011_kms_etags_of_parts_are_not_compared(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, BIG);
        rig_faults(&rig,
                   "[{\"op\":[\"UploadPart\",\"UploadPartCopy\",\"CompleteMultipartUpload\","
                   "\"HeadObject\"],\"bucket\":\"dst\",\"action\":{\"kms\":true}}]");
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_COPIED);
        rig_must_be_equal(&rig, false);
        rig_close(&rig);
    }
}

static void c017_a_source_gone_amid_parts_is_vanished(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, BIG);
        rig_faults(&rig,
                   "[{\"op\":[\"UploadPartCopy\",\"GetObject\"],\"nth\":2,\"count\":1,\"action\":{"
                   "\"delete\":{\"bucket\":\"src\",\"key\":\"big\"}}}]");
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
        struct xf_work *parts = rig_step(&rig, XF_TASK_PARTS, "big", 1);
        struct xf_work *abort = rig_step(&rig, XF_TASK_ABORT, "big", 1);
        assert_int_equal(rig_run(&rig, parts), XF_WORK_FAILED);
        assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_VANISHED);
        assert_int_equal(rig_run(&rig, abort), XF_WORK_DONE);
        assert_int_equal(rig_open_uploads(&rig), 0);
        assert_int_equal(rig_dst_size(&rig, "big"), UINT64_MAX);
        rig_close(&rig);
    }
}

static void c052_nothing_is_copied_before_the_destination_was_looked_at(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    rig_faults(&rig,
               "[{\"op\":\"HeadObject\",\"bucket\":\"dst\",\"action\":{\"head_size\":6291456}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
    assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_FAILED);
    assert_int_equal(rig.upload.r.code, XF_E_CHECKSUM);
    assert_non_null(strstr(rig.upload.message, "6291456"));
    assert_non_null(strstr(rig.upload.message, "15728650"));
    rig_close(&rig);
}

static void c053_a_lost_complete_is_judged_by_the_destination(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, BIG);
        rig_faults(&rig,
                   "[{\"op\":\"CompleteMultipartUpload\",\"count\":1,\"action\":{\"reply_lost\":"
                   "true}}]");
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.upload.r.outcome, XF_OUTCOME_COPIED);
        assert_int_equal(rig_count_status(&rig, 1, "CompleteMultipartUpload", "404"), 1);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c053_an_older_object_of_the_same_size_is_not_ours(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"big\",\"size\":15728650,\"seed\":99}");
    rig_faults(&rig,
               "[{\"op\":\"CompleteMultipartUpload\",\"count\":1,\"action\":{\"abort_upload\":"
               "true,\"reply_lost\":true}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
    assert_int_equal(rig.upload.r.code, XF_E_NO_UPLOAD);
    assert_true((rig.upload.r.flags & XF_RESULT_RETRYABLE) != 0);
    rig_no_faults(&rig);
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c055_a_lost_create_leaves_nothing_open(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big2\",\"size\":6000000,\"seed\":4}");
    rig_faults(&rig,
               "[{\"op\":\"CreateMultipartUpload\",\"count\":1,\"action\":{\"reply_lost\":true}}]");
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 1);
    /* the agent died after Create: the next lease of the open task finds what it left */
    rig.has_opened = false;
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 2)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 1);
    /* an upload of a key that begins the same is not touched */
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big2", 1)), XF_WORK_DONE);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 3)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    assert_int_equal(rig_count(&rig, 0, "AbortMultipartUpload"), 3); /* of nothing else */
    /* cancelled with an intent alone */
    struct xf_work *w = rig_step(&rig, XF_TASK_ABORT, "big", 1);
    w->upload_id = XF_STR_EMPTY;
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 1);
    rig_close(&rig);
}

static void c055_an_upload_in_use_by_somebody_else_is_left_alone(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_PARTS, "big", 1)), XF_WORK_DONE);
    /* began after the intent of this one, of the same key, but it holds parts */
    rig.has_opened = false;
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 2)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    struct xf_work *w = rig_step(&rig, XF_TASK_ABORT, "big", 1);
    w->upload_id = XF_STR_EMPTY;
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 1); /* the empty one is gone */
    rig_close(&rig);
}

static void c055_an_upload_that_cannot_be_looked_into_is_left_and_told(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    rig_faults(&rig,
               "[{\"op\":\"ListParts\",\"action\":{\"status\":403,\"code\":\"AccessDenied\"}}]");
    rig.has_opened = false;
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 2)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    assert_true(rig_has_notice(&rig, "upload_left"));
    rig_close(&rig);
}

static void c055_a_newer_upload_of_somebody_else_is_left_alone(void **state)
{
    (void)state;
    struct rig rig;
    char rules[1024];

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    /* empty as ours would be, and of this key, but begun when no Create of ours was on its way */
    assert_in_range(
        snprintf(rules,
                 sizeof(rules),
                 "[{\"op\":\"ListMultipartUploads\",\"action\":{\"body\":"
                 "\"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload>"
                 "<Key>big</Key><UploadId>%s</UploadId><Initiated>2099-01-01T00:00:00.000Z"
                 "</Initiated></Upload></ListMultipartUploadsResult>\"}}]",
                 rig.upload_id),
        1,
        sizeof(rules) - 1);
    rig_faults(&rig, rules);
    rig.has_opened = false;
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 2)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    struct xf_work *w = rig_step(&rig, XF_TASK_ABORT, "big", 1);
    w->upload_id = XF_STR_EMPTY;
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    assert_int_equal(rig_count(&rig, 0, "AbortMultipartUpload"), 0);
    rig_close(&rig);
}

static void c055_of_two_uploads_that_may_be_ours_none_is_touched(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    for (int i = 0; i < 2; i++) {
        rig.has_opened = false;
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    }
    rig.has_opened = false;
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 2)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 3);
    assert_int_equal(rig_count(&rig, 0, "AbortMultipartUpload"), 0);
    assert_true(rig_has_notice(&rig, "upload_left"));
    rig_close(&rig);
}

static void an_older_upload_of_somebody_else_is_left_alone(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    struct xf_work *w = rig_step(&rig, XF_TASK_OPEN, "big", 2);
    w->intent_mono_ms = xf_clock_mono_ms(xf_clock_real()) + 3600 * 1000;
    rig.wall_ahead_ms = 7200 * 1000; /* the wall clock was set since: it proves nothing */
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 2);
    rig_close(&rig);
}

static void c055_abort_is_repeated_until_the_upload_is_gone(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    rig_faults(&rig,
               "[{\"op\":\"AbortMultipartUpload\",\"count\":2,\"action\":{\"status\":204,\"body\":"
               "\"\"}}]");
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 0);
    assert_int_equal(rig_count(&rig, 0, "AbortMultipartUpload"), 3);
    rig_close(&rig);
}

static void c044_short_part_is_never_stored(void **state)
{
    (void)state;
    static const char *const sizes[] = {"part_size = \"5MiB\"\n", "part_size = \"18MiB\"\n"};
    for (size_t i = 0; i < 2; i++) {
        char copy[160];
        struct rig rig;
        (void)snprintf(copy,
                       sizeof(copy),
                       "[copy]\nif_exists = \"overwrite\"\nmode = \"relay\"\n%s",
                       sizes[i]);
        rig_open(&rig, false, copy, NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":40000000,\"seed\":4}");
        rig_faults(&rig,
                   "[{\"op\":\"GetObject\",\"nth\":2,\"count\":2,\"action\":{\"cut_after\":100000,"
                   "\"chunked\":true}}]");
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

/* More than a message or the store takes. */
static void names_that_cannot_be_kept_end_the_upload(void **state)
{
    (void)state;
    char long_name[1100];
    char faults[1500];
    struct rig rig;

    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    rig_open(&rig, false, RELAY, NULL);
    rig_put(&rig, 0, BIG);
    (void)snprintf(faults,
                   sizeof(faults),
                   "[{\"op\":\"CreateMultipartUpload\",\"action\":{\"status\":200,\"work\":true,"
                   "\"body\":\"<InitiateMultipartUploadResult><UploadId>%s</UploadId>"
                   "</InitiateMultipartUploadResult>\"}}]",
                   long_name);
    rig_faults(&rig, faults);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_FAILED);
    assert_false(rig.has_opened);
    assert_int_equal(rig.upload.r.code, XF_E_UNSUPPORTED);
    rig_no_faults(&rig);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_DONE);
    assert_int_equal(rig_open_uploads(&rig), 0);

    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    (void)snprintf(faults,
                   sizeof(faults),
                   "[{\"op\":\"UploadPart\",\"action\":{\"headers\":{\"ETag\":\"%s\"}}}]",
                   long_name);
    rig_faults(&rig, faults);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_PARTS, "big", 1)), XF_WORK_FAILED);
    assert_int_equal(rig.n_parts, 0);
    assert_int_equal(rig.upload.r.code, XF_E_UNSUPPORTED);
    rig_close(&rig);
}

static void an_abort_that_cannot_be_looked_at_is_given_up(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, SERVER, NULL);
    rig_put(&rig, 0, BIG);
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
    rig_faults(&rig,
               "[{\"op\":\"ListParts\",\"action\":{\"status\":403,\"code\":\"AccessDenied\"}}]");
    assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_FAILED);
    assert_int_equal(rig.end.err.code, XF_E_DENIED);
    assert_int_equal(rig_count(&rig, 0, "AbortMultipartUpload"), 1);
    assert_int_equal(rig_open_uploads(&rig), 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_objects_go_in_parts_either_way),
        cmocka_unit_test(parts_above_a_slot_are_streamed),
        cmocka_unit_test(the_layout_of_the_source_is_kept),
        cmocka_unit_test(finished_parts_are_never_sent_again),
        cmocka_unit_test(c003_complete_is_never_sent_without_every_part),
        cmocka_unit_test(c003_a_part_that_is_late_is_waited_for),
        cmocka_unit_test(c004_a_source_that_changes_is_never_mixed),
        cmocka_unit_test(c005_large_objects_keep_their_attributes),
        cmocka_unit_test(c006_large_objects_lose_or_fail_by_denied_tags_as_asked),
        cmocka_unit_test(c008_parts_that_cannot_be_copied_are_relayed),
        cmocka_unit_test(c011_kms_etags_of_parts_are_not_compared),
        cmocka_unit_test(c017_a_source_gone_amid_parts_is_vanished),
        cmocka_unit_test(c044_short_part_is_never_stored),
        cmocka_unit_test(c052_nothing_is_copied_before_the_destination_was_looked_at),
        cmocka_unit_test(c053_a_lost_complete_is_judged_by_the_destination),
        cmocka_unit_test(c053_an_older_object_of_the_same_size_is_not_ours),
        cmocka_unit_test(c055_a_lost_create_leaves_nothing_open),
        cmocka_unit_test(c055_an_upload_that_cannot_be_looked_into_is_left_and_told),
        cmocka_unit_test(c055_an_upload_in_use_by_somebody_else_is_left_alone),
        cmocka_unit_test(c055_abort_is_repeated_until_the_upload_is_gone),
        cmocka_unit_test(an_abort_that_cannot_be_looked_at_is_given_up),
        cmocka_unit_test(names_that_cannot_be_kept_end_the_upload),
        cmocka_unit_test(c055_a_newer_upload_of_somebody_else_is_left_alone),
        cmocka_unit_test(c055_of_two_uploads_that_may_be_ours_none_is_touched),
        cmocka_unit_test(an_older_upload_of_somebody_else_is_left_alone),
    };
    return xf_test_run("agent_upload", tests, NULL, NULL);
}
