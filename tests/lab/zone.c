/*
 * zone.c - preloaded into a program of a lab: host names that no resolver knows.
 *
 * XF_ZONE names a file of lines "NAME ADDRESS...", read at each lookup; NAME may be "*.DOMAIN". The
 * addresses are IPv4 or IPv6. Other names are looked up as ever.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int(lookup_fn)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static bool is_match(const char *pattern, const char *name)
{
    size_t tail = strlen(pattern) - 1;

    if (pattern[0] != '*') {
        return strcmp(pattern, name) == 0;
    }
    return strlen(name) > tail && strcmp(name + strlen(name) - tail, pattern + 1) == 0;
}

/* Addresses of the name, blank between them; false: it is not of the zone. */
static bool find(const char *name, char *line, size_t cap, char **addresses)
{
    const char *path = getenv("XF_ZONE"); /* NOLINT(concurrency-mt-unsafe): not changed */
    FILE *f = path != NULL ? fopen(path, "re") : NULL;
    bool found = false;

    while (f != NULL && !found && fgets(line, (int)cap, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        *addresses = line + strcspn(line, " ");
        if (**addresses == ' ') {
            *(*addresses)++ = '\0';
            found = is_match(line, name);
        }
    }
    if (f != NULL) {
        (void)fclose(f); /* it was only read */
    }
    return found;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's have reserved names */

int getaddrinfo(const char *name,
                const char *service,
                const struct addrinfo *hints,
                struct addrinfo **out)
{
    void *next = dlsym(RTLD_NEXT, "getaddrinfo");
    lookup_fn *real = NULL;
    struct addrinfo numeric = hints != NULL ? *hints : (struct addrinfo){0};
    struct addrinfo **end = out;
    char line[1024];
    char *rest = NULL;

    memcpy(&real, &next, sizeof(real)); /* ISO C has no cast for it */
    if (name == NULL || !find(name, line, sizeof(line), &rest)) {
        return real(name, service, hints, out);
    }
    *out = NULL;
    numeric.ai_flags = AI_NUMERICHOST;
    while (*rest != '\0') {
        size_t len = strcspn(rest, " ");
        bool is_last = rest[len] == '\0';

        rest[len] = '\0';
        if (real(rest, service, &numeric, end) == 0) {
            while (*end != NULL) {
                end = &(*end)->ai_next;
            }
        }
        rest += is_last ? len : len + 1;
    }
    return *out != NULL ? 0 : EAI_NONAME;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
