/* What torch_npu looks at of CANN's libraries: a stand-in for tests, nothing of CANN is in it.

   Everything else the wheel asks for is added by build.py as a function that returns 0. What
   reaches it is appended to the file STAND_IN_LOG, a line each: the function, then `key=value`. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void tell(const char *format, ...) {
    const char *path = getenv("STAND_IN_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    va_list given;
    va_start(given, format);
    vfprintf(file, format, given);
    va_end(given);
    fputc('\n', file);
    fclose(file);
}

static void *something(void) { return calloc(1, 64); }

int aclrtGetDeviceCount(unsigned *count) { *count = 1; return 0; }
int aclrtGetDevice(int *device) { *device = 0; return 0; }
const char *aclrtGetSocName(void) { return "Ascend910B1"; }
const char *aclGetRecentErrMsg(void) { return ""; }
void aclAppLog(void) {}
int aclrtCreateStreamWithConfig(void **stream, unsigned priority, unsigned flag) { *stream = something(); return 0; }
int aclrtCreateEventExWithFlag(void **event, unsigned flag) { *event = something(); return 0; }
int aclrtGetCurrentContext(void **context) { static int one; *context = &one; return 0; }
int aclrtGetRunMode(int *mode) { *mode = 1; return 0; }
size_t aclGetCompileoptSize(int option) { return 64; }
int aclGetCompileopt(int option, char *value, size_t size) { snprintf(value, size, "0"); return 0; }
int aclrtGetMemInfo(int kind, size_t *left, size_t *total) { *left = *total = (size_t)64 << 30; return 0; }
int aclrtMallocHost(void **memory, size_t size) { *memory = malloc(size); return 0; }
int aclrtFreeHost(void *memory) { free(memory); return 0; }
int halGetAPIVersion(int *version) { *version = 0x071900; return 0; } /* too old for the cycle counter */
int halGetDeviceInfo(unsigned device, int module, int info, long *value) { *value = 0; return 1; }
unsigned long MsprofSysCycleTime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * 1000000000ul + now.tv_nsec;
}

/* The profiler: its folder is made as the real one does, and left empty. */
int aclprofInit(const char *path, size_t size) {
    char made[4096];
    const char *below[] = {"", "/host", "/device_0"};
    tell("aclprofInit");
    for (int i = 0; i < 3; i++) {
        snprintf(made, sizeof made, "%.*s/PROF_000001_20260101000000000_STANDIN%s", (int)size, path, below[i]);
        mkdir(made, 0750);
    }
    return 0;
}
void *aclprofCreateConfig(unsigned *devices, unsigned count, int metrics, void *events, unsigned long bits) {
    tell("aclprofCreateConfig devices=%u metrics=%d bits=0x%lx", count, metrics, bits);
    return something();
}
int aclprofDestroyConfig(void *config) { free(config); return 0; }
int aclprofSetConfig(int kind, const char *value, size_t size) {
    tell("aclprofSetConfig kind=%d value=%.*s", kind, (int)size, value);
    return 0;
}
int aclprofStart(void *config) { tell("aclprofStart"); return 0; }
int aclprofStop(void *config) { tell("aclprofStop"); return 0; }
int aclprofFinalize(void) { tell("aclprofFinalize"); return 0; }

/* Marks: a domain is its own name. */
static const char *named(void *domain) { return domain ? domain : "default"; }
void *mstxDomainCreateA(const char *name) { return strdup(name); }
unsigned long mstxDomainRangeStartA(void *domain, const char *text, void *stream) {
    static unsigned long id = 0;
    tell("mstx.start id=%lu domain=%s text=%s", ++id, named(domain), text);
    return id;
}
void mstxDomainRangeEnd(void *domain, unsigned long id) { tell("mstx.end id=%lu domain=%s", id, named(domain)); }
