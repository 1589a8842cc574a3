/* Loops of system calls on DIR/f0, DIR/f1, …: Python's own cost would hide what the calls cost.

   micro OPERATION DIR COUNT [MILLISECONDS]

   Prints what each operation took in nanoseconds, on average.  With MILLISECONDS one pass over the names goes first, and
   passes are repeated for that long; without, there is one pass.  "latency-stat" and "latency-read" print median,
   99th percentile and maximum; "fsync-writer" writes until it gets SIGTERM.  A file is SIZE bytes that repeat its own
   name.  Whatever is not as it should be ends the program with a message and exit status 1. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096, LONG_SIZE = 65536, SMALL_SIZE = 1024, NAMES_IN_DIRECTORY = 100, STAMP = 16 };

static const char *directory;
static volatile sig_atomic_t is_over;

static void fail(const char *what, const char *path) {
    fprintf(stderr, "micro: %s: %s: %s\n", path, what, strerror(errno));
    exit(1);
}

static void claim(int holds, const char *what, const char *path) {
    if (!holds) {
        fprintf(stderr, "micro: %s: this should hold and does not: %s\n", path, what);
        exit(1);
    }
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static const char *name_of(char kind, int number) {
    static char paths[2][4200];
    static int turn;
    char *path = paths[turn ^= 1];
    snprintf(path, sizeof paths[0], "%s/%c%d", directory, kind, number);
    return path;
}

static void fill(char *buffer, size_t size, int number) {
    char stamp[STAMP + 1];
    snprintf(stamp, sizeof stamp, "f%-*d", STAMP - 1, number);
    for (size_t at = 0; at < size; at += STAMP) memcpy(buffer + at, stamp, STAMP);
}

/* ---- checks, outside of what is timed */

static void check_content(const char *path, int number, size_t size, size_t tail) {
    static char expected[LONG_SIZE], found[LONG_SIZE + 16];
    fill(expected, size, number);
    int fd = open(path, O_RDONLY);
    if (fd < 0) fail("open", path);
    ssize_t length = pread(fd, found, sizeof found, 0);
    close(fd);
    claim(length == (ssize_t)(size + tail), "it is as long as it should be", path);
    claim(!memcmp(expected, found, size), "it holds what was written", path);
    for (size_t at = size; at < size + tail; at++) claim(found[at] == '+', "it ends with what was appended", path);
}

static void check_absent(const char *path) {
    struct stat st;
    claim(lstat(path, &st) < 0 && errno == ENOENT, "it is gone", path);
}

static void check_whole(int i) { check_content(name_of('f', i), i, SIZE, 0); }
static void check_small(int i) { check_content(name_of('f', i), i, SMALL_SIZE, 0); }
static void check_appended(int i) {
    struct stat st;
    const char *path = name_of('f', i);
    if (lstat(path, &st)) fail("lstat", path);
    claim(st.st_size > LONG_SIZE, "it is longer than before", path);
    check_content(path, i, LONG_SIZE, st.st_size - LONG_SIZE);
}
static void check_renamed(int i) { check_absent(name_of('f', i)); check_content(name_of('g', i), i, SIZE, 0); }
static void check_renamed_back(int i) { check_absent(name_of('g', i)); check_whole(i); }
static void check_unlinked(int i) { check_absent(name_of('f', i)); }
static void check_mode(int i, mode_t mode) {
    struct stat st;
    const char *path = name_of('f', i);
    if (lstat(path, &st)) fail("lstat", path);
    claim((st.st_mode & 07777) == mode, "it has the new mode", path);
    check_whole(i);
}
static void check_600(int i) { check_mode(i, 0600); }
static void check_640(int i) { check_mode(i, 0640); }
static void check_directory(int i) {
    struct stat st;
    const char *path = name_of('d', i);
    claim(!lstat(path, &st) && S_ISDIR(st.st_mode), "it is a directory", path);
}
static void check_link(int i) {
    char target[64] = "";
    const char *path = name_of('l', i);
    claim(readlink(path, target, sizeof target - 1) == 6 && !strcmp(target, "target"), "it leads to its target", path);
}

/* ---- operations, each on one name */

static void op_stat(int i) {
    struct stat st;
    const char *path = name_of('f', i);
    if (lstat(path, &st)) fail("lstat", path);
    claim(st.st_size == SIZE, "it has its size", path);
}
static void op_open(int i) {
    const char *path = name_of('f', i);
    int fd = open(path, O_RDONLY);
    if (fd < 0) fail("open", path);
    close(fd);
}
static void op_read(int i) {
    static char buffer[SIZE];
    const char *path = name_of('f', i);
    int fd = open(path, O_RDONLY);
    if (fd < 0) fail("open", path);
    claim(read(fd, buffer, SIZE) == SIZE, "all of it is read", path);
    claim(atoi(buffer + 1) == i, "it is this file", path);
    close(fd);
}
static void op_readdir(int i) {
    const char *path = name_of('d', i);
    int names = 0;
    DIR *d = opendir(path);
    if (!d) fail("opendir", path);
    for (struct dirent *entry; (entry = readdir(d));) names += entry->d_name[0] != '.';
    closedir(d);
    claim(names == NAMES_IN_DIRECTORY, "all its names are listed", path);
}
static void write_file(int i, int flags, size_t size) {
    static char buffer[LONG_SIZE];
    const char *path = name_of('f', i);
    fill(buffer, size, i);
    int fd = open(path, flags, 0644);
    if (fd < 0) fail("open", path);
    if (write(fd, buffer, size) != (ssize_t)size) fail("write", path);
    if (close(fd)) fail("close", path);
}
static void op_create(int i) { write_file(i, O_WRONLY | O_CREAT | O_EXCL, SIZE); }
static void op_create_small(int i) { write_file(i, O_WRONLY | O_CREAT | O_EXCL, SMALL_SIZE); }
static void op_create_long(int i) { write_file(i, O_WRONLY | O_CREAT | O_EXCL, LONG_SIZE); }
static void check_long(int i) { check_content(name_of('f', i), i, LONG_SIZE, 0); }
static void op_write_byte(int i) {
    static int fd = -1;
    char byte = (char)i;
    if (fd < 0 && (fd = open(name_of('b', 0), O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0) fail("open", name_of('b', 0));
    if (write(fd, &byte, 1) != 1) fail("write", name_of('b', 0));
}
static void check_byte(int i) {
    static int fd = -1;
    char byte;
    if (fd < 0 && (fd = open(name_of('b', 0), O_RDONLY)) < 0) fail("open", name_of('b', 0));
    claim(read(fd, &byte, 1) == 1 && byte == (char)i, "each byte is where it was written", name_of('b', 0));
}
static void op_overwrite(int i) { write_file(i, O_WRONLY | O_TRUNC, SIZE); }
static void op_append(int i) {
    const char *path = name_of('f', i);
    int fd = open(path, O_WRONLY | O_APPEND);
    if (fd < 0) fail("open", path);
    if (write(fd, "+", 1) != 1) fail("write", path);
    if (close(fd)) fail("close", path);
}
static void op_rename(int i) {
    const char *path = name_of('f', i), *to = name_of('g', i);
    if (rename(path, to)) fail("rename", path);
}
static void op_rename_back(int i) {
    const char *path = name_of('g', i), *to = name_of('f', i);
    if (rename(path, to)) fail("rename", path);
}
static void op_unlink(int i) { if (unlink(name_of('f', i))) fail("unlink", name_of('f', i)); }
static void op_chmod_600(int i) { if (chmod(name_of('f', i), 0600)) fail("chmod", name_of('f', i)); }
static void op_chmod_640(int i) { if (chmod(name_of('f', i), 0640)) fail("chmod", name_of('f', i)); }
static void op_mkdir(int i) { if (mkdir(name_of('d', i), 0755)) fail("mkdir", name_of('d', i)); }
static void op_symlink(int i) { if (symlink("target", name_of('l', i))) fail("symlink", name_of('l', i)); }

static const struct {
    const char *name;
    void (*run)(int), (*check)(int);
} operations[] = {
    {"stat", op_stat, check_whole},
    {"open", op_open, check_whole},
    {"read", op_read, check_whole},
    {"readdir", op_readdir, NULL},
    {"create", op_create, check_whole},
    {"create-small", op_create_small, check_small},
    {"create-long", op_create_long, check_long},
    {"write-byte", op_write_byte, check_byte},
    {"overwrite", op_overwrite, check_whole},
    {"append", op_append, check_appended},
    {"rename", op_rename, check_renamed},
    {"rename-back", op_rename_back, check_renamed_back},
    {"unlink", op_unlink, check_unlinked},
    {"chmod-600", op_chmod_600, check_600},
    {"chmod-640", op_chmod_640, check_640},
    {"mkdir", op_mkdir, check_directory},
    {"symlink", op_symlink, check_link},
};

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_latency(void (*run)(int), int count, int64_t milliseconds) {
    size_t room = 1 << 16, used = 0;
    int64_t *took = malloc(room * sizeof *took), start = now_ns(), before, after = start;
    if (!took) fail("malloc", directory);
    for (int i = 0; after - start < milliseconds * 1000000; i = (i + 1) % count) {
        before = now_ns();
        run(i);
        after = now_ns();
        if (used == room && !(took = realloc(took, (room *= 2) * sizeof *took))) fail("realloc", directory);
        took[used++] = after - before;
    }
    qsort(took, used, sizeof *took, by_value);
    printf("%lld %lld %lld\n", (long long)took[used / 2], (long long)took[used * 99 / 100], (long long)took[used - 1]);
}

static void end(int number) { (void)number; is_over = 1; }

static void write_and_sync(void) {
    static char buffer[LONG_SIZE];
    const char *path = name_of('w', 0);
    signal(SIGTERM, end);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0) fail("open", path);
    long long rounds = 0;
    puts("writing");
    fflush(stdout);
    for (; !is_over; rounds++) {
        if (pwrite(fd, buffer, sizeof buffer, rounds % 256 * sizeof buffer) != sizeof buffer) fail("pwrite", path);
        if (fsync(fd)) fail("fsync", path);
    }
    close(fd);
    printf("%lld\n", rounds);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: micro OPERATION DIR COUNT [MILLISECONDS]\n");
        return 2;
    }
    directory = argv[2];
    int count = atoi(argv[3]);
    int64_t milliseconds = argc > 4 ? atoll(argv[4]) : 0, operation_count = 0, took;
    umask(022);
    if (!strcmp(argv[1], "fsync-writer")) return write_and_sync(), 0;
    if (!strcmp(argv[1], "latency-stat")) return print_latency(op_stat, count, milliseconds), 0;
    if (!strcmp(argv[1], "latency-read")) return print_latency(op_read, count, milliseconds), 0;
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
        if (strcmp(argv[1], operations[k].name)) continue;
        if (milliseconds)
            for (int i = 0; i < count; i++) operations[k].run(i);
        int64_t start = now_ns();
        do {
            for (int i = 0; i < count; i++) operations[k].run(i);
            operation_count += count;
            took = now_ns() - start;
        } while (took < milliseconds * 1000000);
        printf("%.1f\n", (double)took / operation_count);
        if (operations[k].check)
            for (int i = 0; i < count; i++) operations[k].check(i);
        return 0;
    }
    fprintf(stderr, "micro: no operation %s\n", argv[1]);
    return 2;
}
