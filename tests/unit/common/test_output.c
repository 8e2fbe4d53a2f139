// SPDX-License-Identifier: Apache-2.0
// Packing onto disks that are full or broken, and being killed: nothing half-written stays. The
// linker puts the functions below between the library and the system.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "checkpoint/synthetic.h"
#include "common/output_file.h"
#include "pack/packed.h"
#include "unit/files.h"

#define MODEL "tests/fixtures/gptj/fp32-d16-r2"

static bool no_nameless;   // no O_TMPFILE on this file system
static bool no_reserving;  // nor fallocate()
static bool no_proc;       // nor /proc, which would give a nameless file its name
static bool all_taken;     // other files have each of the names that are tried
static int64_t room = -1;  // bytes until the disk is full; -1: there is enough
static const char *broken; // its name

int __real_open(const char *path, int flags, ...);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t at);
int __real_fallocate(int fd, int mode, off_t at, off_t size);
int __real_fsync(int fd);
int __real_linkat(int from, const char *a, int to, const char *b, int flags);
int __real_rename(const char *a, const char *b);
int __real_access(const char *path, int mode);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at);
int __wrap_fallocate(int fd, int mode, off_t at, off_t size);
int __wrap_fsync(int fd);
int __wrap_linkat(int from, const char *a, int to, const char *b, int flags);
int __wrap_rename(const char *a, const char *b);
int __wrap_access(const char *path, int mode);

static bool breaks(const char *name)
{
    if (!broken || strcmp(broken, name) != 0)
        return false;
    errno = EIO;
    return true;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (all_taken && flags & O_EXCL) {
        errno = EEXIST;
        return -1;
    }
    return __real_open(path, flags, mode);
}

// Writes what there is room for, as a disk does, and then says so.
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at)
{
    if (breaks("pwrite"))
        return -1;
    if (room < 0)
        return __real_pwrite(fd, data, size, at);
    if (room == 0) {
        errno = ENOSPC;
        return -1;
    }
    size = (int64_t)size < room ? size : (size_t)room;
    room -= (int64_t)size;
    return __real_pwrite(fd, data, size, at);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t size)
{
    if (no_reserving) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (broken && strcmp(broken, "fallocate") == 0) {
        errno = ENOSPC;
        return -1;
    }
    return __real_fallocate(fd, mode, at, size);
}

int __wrap_fsync(int fd)
{
    return breaks("fsync") ? -1 : __real_fsync(fd);
}

int __wrap_linkat(int from, const char *a, int to, const char *b, int flags)
{
    if (all_taken) {
        errno = EEXIST;
        return -1;
    }
    return breaks("linkat") ? -1 : __real_linkat(from, a, to, b, flags);
}

int __wrap_rename(const char *a, const char *b)
{
    return breaks("rename") ? -1 : __real_rename(a, b);
}

// Root may write everything.
int __wrap_access(const char *path, int mode)
{
    if (no_proc && mode == F_OK) {
        errno = ENOENT;
        return -1;
    }
    return mode == W_OK && breaks("access") ? -1 : __real_access(path, mode);
}

static int reset(void **state)
{
    (void)state;
    no_nameless = no_reserving = no_proc = all_taken = false;
    room = -1;
    broken = NULL;
    return 0;
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(files_dir);
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n - 2;
}

static const char *model = MODEL;

static int pack(const char *name, struct mr_error *err)
{
    const struct mr_pack_options opt = {.smooth = true};
    struct mr_pack_result result;
    *err = (struct mr_error){0};
    return mr_pack_file(model, files_path(name), &opt, &result, err);
}

static char *packed(const char *name, size_t *size)
{
    struct mr_error err;
    if (pack(name, &err))
        fail_msg("%s", err.text);
    return files_read(files_path(name), size);
}

// Matrices of many pieces, which threads finish in any order.
static const struct mr_config wide = {.vocab_size = 6400,
                                      .n_positions = 16,
                                      .n_embd = 512,
                                      .n_layer = 1,
                                      .n_head = 8,
                                      .rotary_dim = 4,
                                      .n_inner = 512,
                                      .eos_token_id = -1};

static void make_model(const char *dir)
{
    struct mr_error err = {0};
    assert_int_equal(mkdir(dir, 0700), 0);
    if (mr_synthetic_write(dir, &wide, 1, &err))
        fail_msg("%s", err.text);
}

static void remove_model(const char *dir)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void all_ways_give_the_same_file(void **state)
{
    (void)state;
    size_t size, again;
    char dir[512];
    (void)snprintf(dir, sizeof dir, "%s/model", files_dir);
    make_model(dir);
    model = dir;
    char *first = packed("a.mill", &size);
    for (int i = 0; i < 12; i++) {
        static const char *const threads[] = {"1", "3", "7"};
        (void)setenv("MILLRACE_THREADS", threads[i % 3], 1);
        no_nameless = i & 4;
        no_reserving = i >= 8;
        no_proc = i % 2;
        char *other = packed("a.mill", &again); // in place of the one before
        assert_int_equal(size, again);
        assert_memory_equal(first, other, size);
        assert_int_equal(entries(), 2); // with the model
        free(other);
    }
    (void)unsetenv("MILLRACE_THREADS");
    // ... and so does the model in memory
    struct mr_error err = {0};
    struct mr_packed p;
    const struct mr_pack_options opt = {.smooth = true};
    assert_int_equal(mr_pack_directory(&p, dir, &opt, &err), 0);
    assert_int_equal(mr_packed_save(&p, dir, files_path("a.mill"), NULL, &err), 0);
    mr_packed_close(&p);
    char *other = files_read(files_path("a.mill"), &again);
    assert_int_equal(size, again);
    assert_memory_equal(first, other, size);
    free(other);
    free(first);
    assert_int_equal(remove(files_path("a.mill")), 0);
    remove_model(dir);
    model = MODEL;
}

static void full_disk_at_any_byte_leaves_nothing(void **state)
{
    (void)state;
    struct mr_error err;
    size_t size;
    free(packed("a.mill", &size));
    assert_int_equal(remove(files_path("a.mill")), 0);
    int failures = 0;
    for (int named = 0; named < 2; named++) {
        no_nameless = named;
        for (size_t n = 0;; n += n < 100 ? 33 : 7919) {
            room = (int64_t)n;
            int rc = pack("a.mill", &err);
            if (rc == 0)
                break;
            assert_refused(rc, MR_ERR_IO, &err, "a.mill: cannot write: No space left");
            assert_int_equal(entries(), 0);
            failures++;
        }
        assert_int_equal(entries(), 1);
        assert_int_equal(remove(files_path("a.mill")), 0);
    }
    assert_true(failures > 20);
}

static void broken_disk_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *call, *words;
        bool named, replace;
    } cases[] = {
        {"fallocate", "there is no room for", false, false},
        {"fallocate", "there is no room for", true, false},
        {"pwrite", "cannot write", false, false},
        {"fsync", "cannot write", false, false},
        {"fsync", "cannot write", true, false},
        {"linkat", "cannot put the file there", false, false},
        {"rename", "cannot put the file there", true, false},
        {"rename", "cannot put the file there", false, true},
        {"access", "is not to be written", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err;
        if (cases[i].replace)
            (void)files_write_text("a.mill", "what was there");
        broken = cases[i].call;
        no_nameless = cases[i].named;
        int rc = pack("a.mill", &err);
        assert_refused(rc, MR_ERR_IO, &err, cases[i].words);
        assert_int_equal(entries(), cases[i].replace);
        if (cases[i].replace) {
            size_t size;
            char *text = files_read(files_path("a.mill"), &size);
            assert_string_equal(text, "what was there");
            free(text);
            assert_int_equal(remove(files_path("a.mill")), 0);
        }
    }
}

// Nobody goes on for ever.
static void names_that_are_taken_are_given_up(void **state)
{
    (void)state;
    struct mr_error err;
    (void)files_write_text("a.mill", "what was there");
    all_taken = true;
    for (int named = 0; named < 2; named++) {
        no_nameless = named;
        assert_refused(pack("a.mill", &err), MR_ERR_IO, &err,
                       named ? "cannot create a file there: File exists"
                             : "cannot put the file there: File exists");
        assert_int_equal(entries(), 1);
    }
    assert_int_equal(remove(files_path("a.mill")), 0);
}

static int count(void *arg, size_t done, size_t total)
{
    (void)done;
    (void)total;
    ++*(int *)arg;
    return 0;
}

// A name that no file can get is refused before the work.
static void names_of_no_file_are_refused_at_once(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "new/", "a.mill/b", "loop", "no/a.mill"};
    char name[300] = "";
    memset(name, 'n', sizeof name - 1);
    (void)files_write_text("a.mill", "what was there");
    assert_int_equal(symlink("loop", files_path("loop")), 0);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        struct mr_error err = {0};
        struct mr_pack_result result;
        int calls = 0;
        const struct mr_pack_options opt = {.progress = count, .arg = &calls};
        const char *path = i == sizeof bad / sizeof *bad ? name : bad[i];
        char full[600];
        (void)snprintf(full, sizeof full, "%s/%s", files_dir, path);
        int rc = mr_pack_file(MODEL, *path ? full : "", &opt, &result, &err);
        assert_int_equal(rc, MR_ERR_IO);
        assert_int_equal(calls, 0);
        assert_int_equal(entries(), 2);
    }
    assert_int_equal(remove(files_path("loop")), 0);
    assert_int_equal(remove(files_path("a.mill")), 0);
}

static void the_file_behind_a_link_is_replaced(void **state)
{
    (void)state;
    struct stat st;
    size_t size;
    (void)files_write_text("a.mill", "what was there");
    assert_int_equal(symlink("a.mill", files_path("link")), 0);
    free(packed("link", &size));
    assert_int_equal(lstat(files_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(files_path("a.mill"), &st), 0);
    assert_true((size_t)st.st_size == size && size > 100);
    assert_int_equal(remove(files_path("link")), 0);
    assert_int_equal(remove(files_path("a.mill")), 0);
}

// The link would be replaced, not what it means.
static void a_link_to_nothing_is_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_output_file file;
    struct stat st;
    assert_int_equal(symlink("nowhere", files_path("link")), 0);
    assert_refused(pack("link", &err), MR_ERR_IO, &err, "is a link to what is not there");
    assert_refused(mr_output_file_open(&file, files_path("link"), &err), MR_ERR_IO, &err,
                   "is a link to what is not there");
    assert_int_equal(entries(), 1);
    assert_int_equal(lstat(files_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(remove(files_path("link")), 0);
}

// A device is written to, and keeps its name; other things that are no files are refused.
static void what_is_no_file_is_written_to_directly(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_output_file file;
    struct stat st;
    assert_int_equal(mr_output_file_open(&file, "/dev/null", &err), 0);
    assert_true(fputs("text", file.file) >= 0);
    assert_int_equal(mr_output_file_commit(&file, "/dev/null", &err), 0);
    assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    assert_int_equal(mr_output_file_open(&file, "/dev/full", &err), 0);
    assert_true(fputs("text", file.file) >= 0);
    assert_refused(mr_output_file_commit(&file, "/dev/full", &err), MR_ERR_IO, &err,
                   "/dev/full: cannot be written: No space left on device");
    assert_refused(mr_output_file_open(&file, files_dir, &err), MR_ERR_IO, &err, "Is a directory");
    (void)files_write_text("a", "what was there");
    broken = "access";
    assert_refused(mr_output_file_open(&file, files_path("a"), &err), MR_ERR_IO, &err,
                   "a: cannot be written: Input/output error");
    assert_int_equal(remove(files_path("a")), 0);
}

static void two_outputs_are_one_file(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {{"a", "a", true},          {"a", "link", true},
                {"a", "b", false},         {"a", "new", false},
                {"new", "./new", true},    {"new", "newer", false},
                {"new/x", "new/x", false}, {"/dev/null", "/dev/null", false}};
    (void)files_write_text("a", "text");
    (void)files_write_text("b", "text");
    assert_int_equal(link(files_path("a"), files_path("link")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char a[600], b[600];
        bool device = *rows[i].a == '/';
        (void)snprintf(a, sizeof a, "%s/%s", device ? "" : files_dir, rows[i].a);
        (void)snprintf(b, sizeof b, "%s/%s", device ? "" : files_dir, rows[i].b);
        if (mr_output_same(a, b) != rows[i].same)
            fail_msg("%s and %s", a, b);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(remove(files_path((const char *[]){"a", "b", "link"}[i])), 0);
}

// A model's files are its input; others beside them may be outputs of before.
static void files_of_a_model_are_not_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is;
    } rows[] = {{"config.json", true},
                {"tokenizer.json", true},
                {"tokenizer_config.json", true},
                {"pytorch_model.bin", true},
                {"model-1-of-2.safetensors", true},
                {"a.safetensors", true},
                {"model.safetensors.index.json", true},
                {"model", false},
                {"model.txt", false},
                {"a.json", false},
                {"a.mill", false}};
    char dir[600], other[600];
    (void)snprintf(dir, sizeof dir, "%s", files_path("dir"));
    (void)snprintf(other, sizeof other, "%s", files_path("other"));
    assert_true(mkdir(dir, 0700) == 0 && mkdir(other, 0700) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[300];
        (void)snprintf(name, sizeof name, "dir/%s", rows[i].name);
        const char *path = files_write_text(name, "text");
        if (mr_output_is_input(path, dir) != rows[i].is)
            fail_msg("%s", path);
        assert_false(mr_output_is_input(path, other));
        assert_true(mr_output_is_input(path, path));
        assert_int_equal(remove(path), 0);
        assert_false(mr_output_is_input(path, dir));
    }
    assert_true(rmdir(dir) == 0 && rmdir(other) == 0);
}

static int die(void *arg, size_t done, size_t total)
{
    (void)total;
    if (done >= *(size_t *)arg)
        (void)raise(SIGKILL);
    return 0;
}

static void killed_while_packing_leaves_nothing(void **state)
{
    (void)state;
    for (size_t at = 0; at < 120000; at += 30000) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct mr_error err = {0};
            struct mr_pack_result result;
            const struct mr_pack_options opt = {.progress = die, .arg = &at};
            (void)mr_pack_file(MODEL, files_path("a.mill"), &opt, &result, &err);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(entries(), 0);
    }
}

static int stop(void *arg, size_t done, size_t total)
{
    (void)total;
    return done >= *(size_t *)arg;
}

static void stopped_while_packing_leaves_nothing(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++)
        for (size_t at = 0; at < 120000; at += 20000) {
            struct mr_error err = {0};
            struct mr_pack_result result;
            const struct mr_pack_options opt = {.progress = stop, .arg = &at};
            no_nameless = named;
            int rc = mr_pack_file(MODEL, files_path("a.mill"), &opt, &result, &err);
            assert_refused(rc, MR_ERR_INTERRUPTED, &err, "interrupted");
            assert_int_equal(entries(), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_ways_give_the_same_file, reset),
        cmocka_unit_test_setup(full_disk_at_any_byte_leaves_nothing, reset),
        cmocka_unit_test_setup(broken_disk_leaves_nothing, reset),
        cmocka_unit_test_setup(names_that_are_taken_are_given_up, reset),
        cmocka_unit_test_setup(names_of_no_file_are_refused_at_once, reset),
        cmocka_unit_test_setup(the_file_behind_a_link_is_replaced, reset),
        cmocka_unit_test_setup(a_link_to_nothing_is_refused, reset),
        cmocka_unit_test_setup(what_is_no_file_is_written_to_directly, reset),
        cmocka_unit_test_setup(two_outputs_are_one_file, reset),
        cmocka_unit_test_setup(files_of_a_model_are_not_replaced, reset),
        cmocka_unit_test_setup(killed_while_packing_leaves_nothing, reset),
        cmocka_unit_test_setup(stopped_while_packing_leaves_nothing, reset),
    };
    return cmocka_run_group_tests_name("output", tests, files_setup, files_teardown);
}
