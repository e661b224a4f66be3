/*
 * fuzz_replay.c - runs a fuzz target over its corpus without libFuzzer, so that every build replays
 * it.
 *
 * Arguments are files or folders (one level). An empty or absent corpus is a failure: it would
 * prove nothing.
 */
#include "tests/lib/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX = 16 * 1024 * 1024 };

static uint8_t input[INPUT_MAX];

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "cannot open '%s': errno %d\n", path, errno);
        return -1;
    }
    size_t n = fread(input, 1, sizeof(input), f);
    if (fclose(f) != 0) {
        return -1;
    }
    /* An exact heap copy, so that the address sanitizer sees a read past the end. */
    uint8_t *copy = calloc(1, n == 0 ? 1 : n);
    if (copy == NULL) {
        return -1;
    }
    memcpy(copy, input, n);
    int rc = LLVMFuzzerTestOneInput(copy, n);
    free(copy);
    return rc == 0 ? 1 : -1;
}

static int run_folder(const char *path)
{
    DIR *d = opendir(path);
    if (d == NULL) {
        fprintf(stderr, "cannot open '%s': errno %d\n", path, errno);
        return -1;
    }
    int count = 0;
    const struct dirent *e;
    while (count >= 0 && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') {
            continue;
        }
        char name[4096];
        int len = snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (len < 0 || (size_t)len >= sizeof(name) || run_file(name) < 0) {
            count = -1;
        } else {
            count++;
        }
    }
    (void)closedir(d); /* read only */
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) {
            fprintf(stderr, "no corpus at '%s'\n", argv[i]);
            return 1;
        }
        int n = S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
        if (n < 0) {
            return 1;
        }
        total += n;
    }
    printf("replayed %d inputs\n", total);
    return total > 0 ? 0 : 1;
}
