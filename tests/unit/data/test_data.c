// SPDX-License-Identifier: Apache-2.0
// Training data: records of texts, JSON lines and CSV, plain and compressed; windows; files in
// HDF5, our own, damaged ones, and those of other software.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hdf5/serial/hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "cli/data/train_data.h"
#include "data/examples.h"
#include "data/records.h"
#include "pack/hash.h"
#include "unit/check.h"
#include "unit/data/checksummed.h"
#include "unit/files.h"

static const struct mr_data_fields usual = {
    .text = "text", .prompt = "prompt", .completion = "completion"};
static char path[512];

// ---- records ------------------------------------------------------------------------------------

static void put(char *out, size_t room, const char *before, const char *text, size_t size,
                const char *behind)
{
    size_t at = strlen(out);
    if (text)
        (void)snprintf(out + at, room - at, "%s%.*s%s", before, (int)size, text, behind);
}

// All records as one text: "[prompt>text]" or "[text]", '.' behind those that end, "[text+pair=
// label]" of those with a label; or the error.
static int read_with(const void *bytes, size_t size, enum mr_data_format format,
                     const struct mr_data_fields *fields, char *out, size_t room)
{
    struct mr_error err = {0};
    struct mr_records *r = allocate(1, sizeof *r);
    struct mr_record record;
    FILE *file = fmemopen((void *)(uintptr_t)(size ? bytes : "\n"), size ? size : 1, "rb");
    assert_non_null(file);
    if (size == 0)
        assert_int_equal(fgetc(file), '\n'); // fmemopen() knows no empty memory
    *out = 0;
    int rc = mr_source_from(&r->source, file, "f", &err);
    if (rc == 0) {
        rc = mr_records_open(r, format, fields, "<end>", 5, &err);
        while (rc == 0 && (rc = mr_records_next(r, &record, &err)) > 0) {
            rc = 0;
            put(out, room, "[", "", 0, "");
            put(out, room, "", record.prompt, record.prompt_size, ">");
            put(out, room, "", record.text, record.size, record.whole && !record.label ? "." : "");
            put(out, room, "+", record.pair, record.pair_size, "");
            put(out, room, "=", record.label, record.label_size, "");
            put(out, room, "]", "", 0, "");
        }
        mr_records_close(r);
    }
    if (rc < 0)
        (void)snprintf(out, room, "%s", err.text);
    free(r);
    return rc;
}

static int read_all(const void *bytes, size_t size, enum mr_data_format format, char *out,
                    size_t room)
{
    return read_with(bytes, size, format, &usual, out, room);
}

static void expect(const char *text, enum mr_data_format format, const char *want)
{
    char got[1000];
    int rc = read_all(text, strlen(text), format, got, sizeof got);
    if (rc != 0 || strcmp(got, want) != 0)
        fail_msg("%s: %s; expected %s", text, got, want);
}

static void records_are_read(void **unused)
{
    (void)unused;
    expect("", MR_DATA_TEXT, "");
    expect("a\nb", MR_DATA_TEXT, "[a\nb]");
    expect("a<end>b<en<end><end>", MR_DATA_TEXT, "[a<end>][b<en<end>][<end>]");
    expect("", MR_DATA_JSONL, "");
    expect("{\"text\":\"a\"}\n\n \t\r\n{\"prompt\":\"p\",\"completion\":\"c\",\"x\":[1]}",
           MR_DATA_JSONL, "[a.][p>c.]");
    expect("\xEF\xBB\xBF{\"text\":\"\\u00e9\"}\r\n", MR_DATA_JSONL, "[\xC3\xA9.]");
    expect("{\"text\":\"t\",\"prompt\":\"\",\"completion\":\"c\"}", MR_DATA_JSONL, "[>c.]");
    expect("\xEF\xBC\xA1", MR_DATA_TEXT, "[\xEF\xBC\xA1]"); // no mark, but text
    expect("\xEF\xBB\xA1", MR_DATA_TEXT, "[\xEF\xBB\xA1]");
    expect("\xEF\xBB", MR_DATA_TEXT, "[\xEF\xBB]");
    expect("text\n", MR_DATA_CSV, "");
    expect("text\r\na\r\nb", MR_DATA_CSV, "[a.][b.]");
    expect("\xEF\xBB\xBFn,text\n1,\"a,\"\"b\"\"\r\nc\"\n\n2,\n", MR_DATA_CSV, "[a,\"b\"\r\nc.][.]");
    expect("completion,x,prompt\nc,,p\r\n\"\",\"\",\"\"\n", MR_DATA_CSV, "[p>c.][>.]");
    expect("text\na\rb\n", MR_DATA_CSV, "[a\rb.]");
    expect(",text\n1,a\n", MR_DATA_CSV, "[a.]"); // as pandas names its index
    expect("text\r\na\r\n\"b\" \"c\n\n,\n", MR_DATA_TSV, "[a.][\"b\" \"c.][,.]");
    expect("x\tcompletion\tprompt\n\tc\tp\n\t\t\n", MR_DATA_TSV, "[p>c.][>.]");
    expect("{\"id\":99999999999999999999,\"text\":\"a\"}", MR_DATA_JSONL, "[a.]");
    assert_int_equal(mr_data_format_of("D.CSV"), MR_DATA_CSV);
    assert_int_equal(mr_data_format_of("D.JsonL.ZST"), MR_DATA_JSONL);
    assert_int_equal(mr_data_format_of("a.jsonl.zst"), MR_DATA_JSONL);
    assert_int_equal(mr_data_format_of("x.csv"), MR_DATA_CSV);
    assert_int_equal(mr_data_format_of("x.TSV.zst"), MR_DATA_TSV);
    assert_int_equal(mr_data_format_of(".zst"), MR_DATA_TEXT);
    assert_int_equal(mr_data_format_of("csv"), MR_DATA_TEXT);
}

static void labels_are_read(void **unused)
{
    (void)unused;
    const struct mr_data_fields one = {.text = "text", .prompt = "p", .label = "label"},
                                two = {.text = "a", .pair = "other", .label = "l"};
    static const struct {
        const char *text;
        enum mr_data_format format;
        bool pair;
        const char *want;
    } rows[] = {
        {"label\ttext\n1\tgood\n0\t\"bad\n", MR_DATA_TSV, false, "[good=1][\"bad=0]"},
        {"{\"text\":\"t\",\"label\":-3}\n{\"label\":\"x\",\"text\":\"\"}", MR_DATA_JSONL, false,
         "[t=-3][=x]"},
        {"{\"a\":\"t\",\"other\":\"u\",\"l\":\"yes\"}", MR_DATA_JSONL, true, "[t+u=yes]"},
        {"l,other,a\n1,\"u,v\",t\n", MR_DATA_CSV, true, "[t+u,v=1]"},
        {"l,othr,a\n", MR_DATA_CSV, true,
         "line 1: has no 'other', but othr; name the fields with --text"},
        {"text,Label\n", MR_DATA_CSV, false, "line 1: has no 'label', but Label"},
        {"{\"text\":\"t\"}", MR_DATA_JSONL, false, "line 1: has no 'label'; name"},
        {"{\"text\":\"t\",\"label\":true}", MR_DATA_JSONL, false, "'label' is "},
        {"{\"text\":\"t\",\"label\":0.5}", MR_DATA_JSONL, false, "'label' is "},
        {"{\"p\":\"t\",\"label\":\"a\"}", MR_DATA_JSONL, false, "line 1: has no 'text'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[1000];
        (void)read_with(rows[i].text, strlen(rows[i].text), rows[i].format,
                        rows[i].pair ? &two : &one, got, sizeof got);
        if (!strstr(got, rows[i].want))
            fail_msg("%s: %s; expected %s", rows[i].text, got, rows[i].want);
    }
}

static void refuse(const void *bytes, size_t size, enum mr_data_format format, const char *words)
{
    char got[1000];
    int rc = read_all(bytes, size, format, got, sizeof got);
    if (rc >= 0 || !strstr(got, words))
        fail_msg("%.60s: \"%s\" (%d) has no \"%s\"", (const char *)bytes, got, rc, words);
}

static void wrong_records_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum mr_data_format format;
        const char *words;
    } rows[] = {
        {"{\"text\":\"a\"}\n{\"text\":", MR_DATA_JSONL, "f: line 2"},
        {"\n[1]", MR_DATA_JSONL, "f: line 2"},
        {"{\"text\":1}", MR_DATA_JSONL, "line 1: 'text' is an integer, not a string"},
        {"{\"prompt\":\"a\",\"completion\":null}", MR_DATA_JSONL, "'completion' is"},
        {"{\"txt\":\"a\"}", MR_DATA_JSONL, "neither 'text' nor 'prompt' and 'completion', but txt"},
        {"{\"prompt\":\"a\"}", MR_DATA_JSONL, "neither"},
        {"\xEF\xBB", MR_DATA_JSONL, "line 1"}, // less than a mark, and others than it
        {"\xEF\xBC\xA1{\"text\":\"a\"}", MR_DATA_JSONL, "line 1"},
        {"\xEF\xBB\xA1{\"text\":\"a\"}", MR_DATA_JSONL, "line 1"},
        {"{\"text\":\"a\",\"text\":\"b\"}", MR_DATA_JSONL, "line 1"},
        {"{\"text\":\"\xFF\"}", MR_DATA_JSONL, "line 1"},
        {"", MR_DATA_CSV, "is empty; its first line names the columns"},
        {"a,,Text\n", MR_DATA_CSV, "neither 'text' nor 'prompt' and 'completion', but Text"},
        {"prompt\n", MR_DATA_CSV, "neither"},
        {"text,text\n", MR_DATA_CSV, "line 1: has this column twice: text"},
        {"text,b\na\n", MR_DATA_CSV, "line 2: has 1 fields, and those before 2"},
        {"text\n\na,b\n", MR_DATA_CSV, "line 3: has 2 fields"},
        {"text\n\"a\n\nb", MR_DATA_CSV, "line 2: a quoted field does not end"},
        {"text\n\"a\"b\n", MR_DATA_CSV, "line 2: text stands behind a quoted field"},
        {"text\n\"x\n\"\na\"b\n", MR_DATA_CSV, "line 4: a quote stands within a field"},
        {"text\ta\nb\n", MR_DATA_TSV, "line 2: has 1 fields, and those before 2"},
        {"a\tTxt\n", MR_DATA_TSV, "neither 'text' nor 'prompt' and 'completion', but Txt"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(rows[i].text, strlen(rows[i].text), rows[i].format, rows[i].words);
    char many[3000];
    memset(many, ',', sizeof many);
    refuse(many, sizeof many, MR_DATA_CSV, "more than 1024 fields");
}

// Looked at unless somebody says that it is a text, whatever its name.
static void what_is_no_text_is_named(void **unused)
{
    (void)unused;
#define ROW(BYTES, WORDS) {BYTES, sizeof(BYTES) - 1, WORDS}
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } rows[] = {
        ROW("\x1F\x8B\x08", "f: is gzip; unpack it; millrace data reads what zstd"),
        ROW("\xFD"
            "7zXZ\0",
            "is xz; unpack"),
        ROW("BZh9", "is bzip2; unpack"),
        ROW("PK\3\4a", "is a zip archive"),
        ROW("MILLRACE\1", "is a packed model"),
        ROW("MILLRDAT", "is a file of millrace data; train --data takes it"),
        ROW("\x89HDF\r\n\x1A\n", "is HDF5; train --data takes it"),
        ROW("%PDF-1.7", "is PDF; pdftotext"),
        ROW("PAR1", "is Parquet"),
        ROW("\xFF\xFE"
            "a\0",
            "is UTF-16; iconv"),
        ROW("\xC8\x01\0\0\0\0\0\0{\"__metadata__\"", "is safetensors"),
        ROW("text, and\0 no text", "has NUL bytes, so it is no text; 'millrace data --from text'"),
        ROW("nine char\xFF\xFF", "is not UTF-8 (2 of its first 11 bytes)"),
    };
    char got[1000];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refuse(rows[i].bytes, rows[i].size, MR_DATA_AUTO, rows[i].words);
        assert_int_equal(read_all(rows[i].bytes, rows[i].size, MR_DATA_TEXT, got, sizeof got), 0);
    }
    expect("ten chars.\xFF", MR_DATA_AUTO, "[ten chars.\xFF]"); // a tenth may be wrong
    expect("ten chars.\xC3", MR_DATA_AUTO, "[ten chars.\xC3]");
}

// ---- compressed ---------------------------------------------------------------------------------

static void compressed_text_is_read(void **unused)
{
    (void)unused;
    enum { SIZE = 300000 };
    char *text = allocate(1, SIZE), *got = allocate(1, SIZE + 100);
    unsigned char *packed = allocate(1, 2 * SIZE);
    for (int i = 0; i < SIZE; i++) // longer than a block, compressed and not
        text[i] = (char)('a' + (i < SIZE / 2 ? i % 7 : (i * 7001 >> 5) % 26));
    size_t first = ZSTD_compress(packed, 2 * SIZE, text, 70000, 3);
    size_t all = first + ZSTD_compress(packed + first, 2 * SIZE - first, text + 70000, SIZE - 70000,
                                       3); // a second frame
    assert_false(ZSTD_isError(all));
    assert_int_equal(read_all(packed, all, MR_DATA_TEXT, got, SIZE + 100), 0);
    assert_true(strlen(got) == SIZE + 2 && memcmp(got + 1, text, SIZE) == 0);
    refuse(packed, all - 1, MR_DATA_TEXT, "ends within compressed data");
    refuse(packed, first / 2, MR_DATA_TEXT, "ends within compressed data");
    packed[first] ^= 0x40;
    refuse(packed, all, MR_DATA_TEXT, "the file is damaged, or no .zst");
    free(text);
    free(got);
    free(packed);
}

// ---- windows ------------------------------------------------------------------------------------

// Each target is learnt once, in windows that are full but for the last one.
static void check_cut(struct mr_cut cut, size_t from, size_t learnt, size_t to)
{
    struct mr_window w[64];
    int seen[64] = {0};
    size_t n = mr_windows_cut(&cut, from, learnt, to, NULL);
    assert_true(n <= 64 && mr_windows_cut(&cut, from, learnt, to, w) == n);
    for (size_t i = 0; i < n; i++) {
        size_t end = w[i].at + (size_t)w[i].count;
        assert_true(w[i].at >= from && end < to && w[i].count <= cut.sequence);
        assert_true(w[i].count == cut.sequence || end == to - 1);
        assert_true(w[i].skip >= 0 && w[i].skip < w[i].count);
        assert_true(i == 0 || w[i].at + (size_t)cut.overlap == w[i - 1].at + (size_t)cut.sequence);
        for (size_t t = w[i].at + (size_t)w[i].skip + 1; t <= end; t++)
            seen[t]++;
    }
    for (size_t t = from; t < to; t++)
        assert_int_equal(seen[t], t > from && t >= learnt);
}

static void each_target_is_learnt_once(void **unused)
{
    (void)unused;
    for (int sequence = 1; sequence < 9; sequence++)
        for (int overlap = 0; overlap < sequence; overlap++)
            for (size_t from = 0; from < 6; from += 5)
                for (size_t to = from; to < from + 30; to++)
                    for (size_t learnt = from; learnt <= to; learnt += 1 + learnt / 4)
                        check_cut((struct mr_cut){sequence, overlap}, from, learnt, to);
}

// ---- files --------------------------------------------------------------------------------------

enum { LENGTH = 6, VOCAB = 50 };

static void write_file(int rows)
{
    struct mr_examples_writer w;
    struct mr_error err = {0};
    int32_t ids[LENGTH + 1];
    check(mr_examples_create(&w, path, LENGTH, &err), &err);
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k <= LENGTH; k++)
            ids[k] = (i * 7 + k * 3) % VOCAB;
        const struct mr_window window = {0, 1 + i % LENGTH, i % LENGTH / 2};
        check(mr_examples_add(&w, ids, &window, 1, &err), &err);
    }
    const struct mr_examples_notes notes = {UINT64_C(0xfedcba9876543210), VOCAB, 2, NULL};
    check(mr_examples_end(&w, &notes, 0, &err), &err);
}

static int open_one(struct mr_examples *e, const char *name, int vocab, struct mr_error *err)
{
    return mr_examples_open_all(e, &name, 1, vocab, err);
}

static void files_are_read_back(void **unused)
{
    (void)unused;
    struct mr_examples e;
    struct mr_error err = {0};
    int32_t tokens[LENGTH], targets[LENGTH];
    enum { ROWS = 3 * 3641 }; // whole chunks; one less: not all of the last
    write_file(ROWS);
    assert_true(mr_examples_is(path) && mr_examples_is(files_dir) && !mr_examples_is("/dev/null"));
    check(open_one(&e, path, VOCAB, &err), &err);
    assert_true(e.count == ROWS && e.length == LENGTH);
    assert_true(e.vocabulary == UINT64_C(0xfedcba9876543210));
    for (int n = 0; n < ROWS; n++) {
        int i = (int)((unsigned)n * 7919U % ROWS);
        check(mr_examples_read(&e, (size_t)i, tokens, targets, &err), &err);
        assert_int_equal(e.list[i].count, 1 + i % LENGTH);
        for (int k = 0; k < e.list[i].count; k++) {
            assert_int_equal(tokens[k], (i * 7 + k * 3) % VOCAB);
            assert_int_equal(targets[k], k < i % LENGTH / 2 ? -1 : (i * 7 + k * 3 + 3) % VOCAB);
        }
    }
    uint64_t hash = e.hash;
    mr_examples_close(&e);
    write_file(ROWS - 1);
    check(open_one(&e, path, VOCAB, &err), &err);
    assert_true(e.hash != hash);
    mr_examples_close(&e);
}

static void refuse_file(int vocab, int status, const char *words)
{
    struct mr_examples e;
    struct mr_error err = {0};
    int rc = open_one(&e, path, vocab, &err);
    if (rc != status || !strstr(err.text, words))
        fail_msg("%d, \"%s\": no \"%s\"", rc, err.text, words);
    mr_examples_close(&e);
}

// A bit anywhere, and any end.
static void damaged_files_are_refused(void **unused)
{
    (void)unused;
    write_file(3);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_true(mr_examples_is(path));
    for (long at = 0; at < size; at += at < 24 || (at >= 504 && at < 520) ? 1 : 1 + at % 13) {
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        int byte = fgetc(f);
        for (int flip = 1 << at % 8, again = 0; again < 2; again++) {
            assert_int_equal(fseek(f, at, SEEK_SET), 0);
            assert_true(fputc(again ? byte : byte ^ flip, f) != EOF && fflush(f) == 0);
            assert_true(mr_examples_is(path)); // and no text
            if (!again)
                refuse_file(VOCAB, MR_ERR_FORMAT, "; make it again with millrace data");
        }
    }
    for (long cut = size - 1; cut > 600; cut -= 97) {
        assert_int_equal(ftruncate(fileno(f), cut), 0);
        refuse_file(VOCAB, MR_ERR_FORMAT, "not as long as it was");
    }
    for (long cut = 600; cut > 8; cut -= 37) {
        assert_int_equal(ftruncate(fileno(f), cut), 0);
        refuse_file(VOCAB, MR_ERR_FORMAT, "not as long as it was");
    }
    assert_int_equal(fclose(f), 0);
}

// A front with a right checksum, which says what this program's would not; and a damaged one, of
// whose fields all but one are wrong.
static void fronts_that_lie_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t magic, version, size; // are turned over by these bits
        bool sealed;
        const char *words; // NULL: it is taken for somebody else's
    } rows[] = {
        {0, 2, 0, true, "it is of another version"},
        {0, 0, 1, true, "not as long as it was"},
        {1, 2, 0, false, "the checksum of its beginning is wrong"},
        {1, 0, 1, false, "the checksum of its beginning is wrong"},
        {1, 2, 1, false, NULL},
    };
    struct mr_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_examples_front front;
        struct mr_examples e;
        write_file(3);
        FILE *f = fopen(path, "r+b");
        assert_true(f && fread(&front, sizeof front, 1, f) == 1);
        front.magic[0] ^= (char)rows[i].magic;
        front.version ^= rows[i].version;
        front.size ^= rows[i].size;
        if (rows[i].sealed)
            front.check = XXH3_64bits(&front, offsetof(struct mr_examples_front, check));
        rewind(f);
        assert_true(fwrite(&front, sizeof front, 1, f) == 1 && fclose(f) == 0);
        if (rows[i].words) {
            refuse_file(VOCAB, MR_ERR_FORMAT, rows[i].words);
        } else {
            check(open_one(&e, path, VOCAB, &err), &err);
            assert_int_equal(e.count, 3);
            mr_examples_close(&e);
        }
    }
    (void)files_write("x.h5", "short", 5);
    refuse_file(VOCAB, MR_ERR_FORMAT, "is no HDF5 file that can be read");
    assert_int_equal(unlink(path), 0);
    refuse_file(VOCAB, MR_ERR_IO, "cannot open");
}

// Text that has a name of examples is meant as such; other text is not, however short.
static void examples_are_known_by_their_names(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        bool are;
    } rows[] = {{"a.h5", true}, {"a.HDF5", true}, {"a.h5.txt", false}, {"h5", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)files_write(rows[i].name, "text", 4);
        assert_int_equal(mr_examples_is(files_path(rows[i].name)), rows[i].are);
        assert_int_equal(unlink(files_path(rows[i].name)), 0);
    }
    assert_false(mr_examples_is(files_path("a.h5")));
}

// With a limit on the size of files, which `rows` windows reach in the middle or at the end; the
// limit is gone when it returns: what counts coverage writes files at a process's end.
static int write_to_full_disk(const char *name, int rows, struct mr_error *err)
{
    const struct mr_examples_notes notes = {1, VOCAB, 0, NULL};
    const struct mr_window window = {0, 1023, 0};
    struct mr_examples_writer w;
    struct rlimit was;
    int32_t ids[1024];
    uint32_t x = 1;
    int rc = mr_examples_create(&w, name, 1023, err);
    (void)signal(SIGXFSZ, SIG_IGN);
    if (rc < 0 || getrlimit(RLIMIT_FSIZE, &was) != 0)
        return 0;
    const struct rlimit little = {rows == 1 ? 1024 : 600000, was.rlim_max};
    if (setrlimit(RLIMIT_FSIZE, &little) != 0)
        return 0;
    for (int i = 0; i < rows && rc == 0; i++) {
        for (int k = 0; k < 1024; k++)
            ids[k] = (int32_t)((x = x * 1664525 + 1013904223) >> 8); // not to be packed
        rc = mr_examples_add(&w, ids, &window, 0, err);
    }
    bool when = (rows == 1) == (rc == 0); // a single row is written at the end
    rc = mr_examples_end(&w, &notes, rc, err);
    return setrlimit(RLIMIT_FSIZE, &was) == 0 && when ? rc : 0;
}

// There is no room for a block while rows come, or for what is left at the end. In a process of
// its own: HDF5 keeps what it could not write.
static void a_full_disk_is_named(void **unused)
{
    (void)unused;
    for (int rows = 1; rows <= 400; rows += 399) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            struct mr_error err = {0};
            int rc = write_to_full_disk(files_path("full.h5"), rows, &err);
            _exit(rc == MR_ERR_IO && strstr(err.text, "full.h5: cannot be written: File too large")
                      ? 0
                      : 1);
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
        assert_int_not_equal(access(files_path("full.h5"), F_OK), 0);
    }
}

// A file of other software: `data` of some type and shape, and n_examples, unless it is negative.
static void write_foreign(hid_t type, int rank, const hsize_t *shape, const int64_t *values,
                          int64_t said)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, shape, NULL), one = H5Screate(H5S_SCALAR);
    hid_t data = H5Dcreate2(file, "data", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (values)
        assert_true(H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    if (said >= 0) {
        hid_t a = H5Acreate2(file, "n_examples", H5T_STD_I64LE, one, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(a, H5T_NATIVE_INT64, &said) >= 0);
        assert_true(H5Aclose(a) >= 0);
    }
    assert_true(H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Sclose(one) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

static void add_attribute(const char *name, hid_t type, int count)
{
    const hsize_t n = (hsize_t)count;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(1, &n, NULL);
    hid_t a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Aclose(a) >= 0 && H5Sclose(space) >= 0 && H5Fclose(file) >= 0);
}

static void other_files_are_read_or_refused(void **unused)
{
    (void)unused;
    // Two rows of three: ids, mask, targets. The second has no target: it is passed over.
    int64_t v[2][3][3] = {{{4, 5, 6}, {0, 1, 0}, {5, 6, 7}}, {{1, 2, 3}, {0, 0, 0}, {2, 3, 4}}};
    const hsize_t shape[] = {2, 3, 3}, other[] = {3, 2, 3}, flat[] = {6, 3};
    const hid_t types[] = {H5T_STD_I32LE, H5T_STD_I64BE, H5T_STD_U16LE};
    struct mr_examples e;
    struct mr_error err = {0};
    int32_t tokens[3], targets[3];
    for (int i = 0; i < 3; i++) {
        write_foreign(types[i], 3, shape, &v[0][0][0], i ? 2 : -1);
        check(open_one(&e, path, VOCAB, &err), &err);
        check(mr_examples_read(&e, 0, tokens, targets, &err), &err);
        assert_true(e.count == 1 && e.list[0].count == 2 && e.vocabulary == 0);
        assert_true(tokens[0] == 4 && tokens[1] == 5 && targets[0] == -1 && targets[1] == 6);
        mr_examples_close(&e);
    }
    refuse_file(6, MR_ERR_FIT, "row 0: token 6 is not one of the model's 6");
    // It does not say whose tokens they are: any model that has them learns from it.
    const struct mr_load_options described = {.describe = true};
    const char *const paths[] = {path};
    struct mr_model *model;
    struct train_data d;
    check(mr_model_load(&model, "synthetic:gpt2,layers=1,vocab=50", &described, &err), &err);
    check(train_data_open(&d, model, paths, 1, 0, 0, &err), &err);
    assert_true(d.learnt == 1 && d.held_out == 0 && !d.full);
    train_data_free(&d);
    mr_model_close(model);
    static const struct {
        int part;
        int64_t is;
        const char *words;
    } rows[] = {
        {0, -1, "row 0: token -1 is not one"},
        {2, -2, "row 0: token -2 is not one"},
        {2, VOCAB, "row 0: token 50 is not one"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t was = v[0][rows[i].part][1];
        v[0][rows[i].part][1] = rows[i].is;
        write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], 2);
        refuse_file(VOCAB, MR_ERR_FIT, rows[i].words);
        v[0][rows[i].part][1] = was;
    }
    write_foreign(H5T_IEEE_F32LE, 3, shape, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "'data' has no whole numbers");
    write_foreign(H5T_STD_I32LE, 3, other, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "not of shape [n, 3, length]");
    write_foreign(H5T_STD_I32LE, 2, flat, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "not of shape [n, 3, length]");
    write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], 3);
    refuse_file(VOCAB, MR_ERR_FORMAT, "n_examples is not the number of rows");
    v[1][1][2] = 2;
    write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "row 1: the mask is 2 at 2");
    v[1][1][2] = 1;
    v[1][0][0] = INT64_C(1) << 40; // becomes no id by being cut off
    write_foreign(H5T_STD_I64LE, 3, shape, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FIT, "row 1: token 1099511627776 is not one");
    v[1][1][2] = v[0][1][1] = 0;
    write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "no row has a target that is learnt");
    const hsize_t sizes[][3] = {{0, 3, 3}, {2, 3, 0}, {1, 3, MR_EXAMPLES_LONGEST + 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_foreign(H5T_STD_I32LE, 3, sizes[i], NULL, (int64_t)sizes[i][0]);
        refuse_file(VOCAB, MR_ERR_FORMAT, "'data' has no rows, or none of 1 to 1048576 tokens");
    }
    write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], -1);
    add_attribute("n_examples", H5T_STD_I64LE, 2);
    refuse_file(VOCAB, MR_ERR_FORMAT, "n_examples is not the number of rows");
    for (int count = 1; count < 3; count++) {
        write_foreign(H5T_STD_I32LE, 3, shape, &v[0][0][0], 2);
        add_attribute("vocabulary", count == 1 ? H5T_IEEE_F64LE : H5T_STD_I64LE, count);
        refuse_file(VOCAB, MR_ERR_FORMAT, "'vocabulary' is no number");
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    refuse_file(VOCAB, MR_ERR_FORMAT, "has no 'data'");
}

// A file that claims a trillion rows and has none.
static void rows_that_cannot_be_there_are_refused(void **unused)
{
    (void)unused;
    const hsize_t shape[] = {1000000000000, 3, 64}, chunk[] = {16, 3, 64};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, shape, NULL);
    assert_true(H5Pset_chunk(how, 3, chunk) >= 0 && H5Pset_deflate(how, 9) >= 0);
    hid_t data = H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Pclose(how) >= 0);
    assert_true(H5Fclose(file) >= 0);
    refuse_file(VOCAB, MR_ERR_FORMAT, "claims 1000000000000 rows, which its 0 bytes of data");
}

// Bytes of a row that are not those that were written, of which the library has a checksum.
static void damaged_rows_are_refused(void **unused)
{
    (void)unused;
    const hsize_t shape[] = {2, 3, 3};
    const int32_t v[18] = {4, 5, 6, 0, 1, 0, 5, 6, 7, 1, 2, 3, 0, 0, 0, 2, 3, 4};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    long at = write_checksummed(file, "data", 3, shape, v);
    struct mr_examples e;
    struct mr_error err = {0};
    check(open_one(&e, path, VOCAB, &err), &err);
    mr_examples_close(&e);
    damage(path, at);
    refuse_file(VOCAB, MR_ERR_FORMAT, "rows cannot be read: it is damaged or cut off");
}

static size_t unchanged(unsigned flags, size_t count, const unsigned *values, size_t size,
                        size_t *room, void **bytes)
{
    (void)flags;
    (void)count;
    (void)values;
    (void)room;
    (void)bytes;
    return size;
}

// A compression that the library here does not have is no damage.
static void other_compression_is_named(void **unused)
{
    (void)unused;
    enum { LZF = 32000 };
    static const struct {
        const char *name, *words;
    } rows[] = {{"lzf", "not here: lzf (32000)"}, {"", "not here: it has no name (32000)"}};
    const hsize_t shape[] = {2, 3, 3}, chunk[] = {2, 3, 3};
    const int64_t v[18] = {4, 5, 6, 0, 1, 0, 5, 6, 7};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, LZF, 1, 1, rows[i].name, NULL, NULL, unchanged};
        assert_true(H5Zregister(&lzf) >= 0);
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, shape, NULL);
        assert_true(H5Pset_chunk(how, 3, chunk) >= 0 && H5Pset_shuffle(how) >= 0);
        assert_true(H5Pset_filter(how, LZF, H5Z_FLAG_MANDATORY, 0, NULL) >= 0);
        hid_t data = H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
        assert_true(H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
        assert_true(H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Pclose(how) >= 0);
        assert_true(H5Fclose(file) >= 0 && H5Zunregister(LZF) >= 0);
        refuse_file(VOCAB, MR_ERR_UNSUPPORTED, rows[i].words);
    }
}

// Ctrl-C: rows are not read to their end, nor input, and a file that is finished does not appear.
static void on_alarm(int sig)
{
    (void)sig;
}

static void a_pipe_that_nobody_writes_to_is_left(void **unused)
{
    (void)unused;
    const struct sigaction heard = {.sa_handler = on_alarm};
    const struct itimerval again = {{0, 10000}, {0, 10000}}, never = {{0}, {0}};
    struct mr_source s;
    struct mr_error err = {0};
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sigaction(SIGALRM, &heard, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &again, NULL), 0);
    int rc = mr_source_open(&s, path, &err);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(rc, MR_ERR_INTERRUPTED);
    (void)unlink(path);
}

static void interrupts_are_heard(void **unused)
{
    (void)unused;
    struct mr_examples_writer w;
    const struct mr_examples_notes notes = {1, VOCAB, 0, NULL};
    struct mr_error err = {0};
    const int32_t ids[] = {1, 2, 3};
    const struct mr_window window = {0, 2, 0};
    char other[sizeof path];
    write_file(3);
    (void)snprintf(other, sizeof other, "%s", files_path("late.h5"));
    check(mr_examples_create(&w, other, 4, &err), &err);
    check(mr_examples_add(&w, ids, &window, 0, &err), &err);
    mr_interrupt();
    assert_int_equal(mr_examples_end(&w, &notes, 0, &err), MR_ERR_INTERRUPTED);
    assert_int_not_equal(access(other, F_OK), 0);
    refuse_file(VOCAB, MR_ERR_INTERRUPTED, "interrupted");
    refuse("a", 1, MR_DATA_TEXT, "interrupted");
    mr_interrupt_clear();
}

// Files of a directory, in the order of their names.
static void directories_are_read(void **unused)
{
    (void)unused;
    int64_t v[2][3][3] = {{{4, 5, 6}, {1, 1, 1}, {5, 6, 7}}, {{1, 2, 3}, {1, 1, 0}, {2, 3, 4}}};
    const hsize_t two[] = {2, 3, 3}, one[] = {1, 3, 3}, longer[] = {1, 3, 6};
    struct mr_examples e;
    struct mr_error err = {0};
    int32_t tokens[3], targets[3];
    char whole[sizeof path], hidden[sizeof path], third[sizeof path];
    (void)snprintf(whole, sizeof whole, "%s", path);
    (void)snprintf(hidden, sizeof hidden, "%s", files_path("b.h5.not"));
    write_foreign(H5T_STD_I32LE, 3, longer, &v[0][0][0], 1); // another name: is not looked at
    assert_int_equal(rename(path, hidden), 0);
    (void)snprintf(path, sizeof path, "%s", files_dir);
    refuse_file(VOCAB, MR_ERR_FORMAT, "has 0 .h5 files");
    (void)snprintf(path, sizeof path, "%s", files_path("b.h5"));
    write_foreign(H5T_STD_I32LE, 3, two, &v[0][0][0], 2);
    (void)snprintf(path, sizeof path, "%s", files_path("a.h5"));
    write_foreign(H5T_STD_I16LE, 3, one, &v[1][0][0], 1);
    (void)files_write(".d.h5", "an editor's", 11);
    (void)files_write("h5", "no end", 6);
    check(open_one(&e, files_dir, VOCAB, &err), &err);
    assert_true(e.count == 3 && e.n_files == 2 && e.tokens == 2 + 3 + 2);
    check(mr_examples_read(&e, 0, tokens, targets, &err), &err);
    assert_true(tokens[0] == 1 && targets[1] == 3);
    check(mr_examples_read(&e, 1, tokens, targets, &err), &err);
    assert_true(tokens[0] == 4 && targets[2] == 7);
    mr_examples_close(&e);
    (void)snprintf(path, sizeof path, "%s", files_path("c.h5"));
    write_foreign(H5T_STD_I32LE, 3, longer, &v[0][0][0], 1);
    (void)snprintf(path, sizeof path, "%s", files_dir);
    refuse_file(VOCAB, MR_ERR_FIT, "c.h5: has other windows than");
    (void)snprintf(third, sizeof third, "%s", files_path("c.h5"));
    (void)snprintf(path, sizeof path, "%s", files_path("d.h5"));
    write_file(1);
    const char *const both[] = {path, third}; // of one length
    assert_refused(mr_examples_open_all(&e, both, 2, VOCAB, &err), MR_ERR_FIT, &err,
                   "c.h5: has other tokens than");
    (void)snprintf(path, sizeof path, "%s", whole);
}

static int setup(void **state)
{
    int rc = files_setup(state);
    (void)snprintf(path, sizeof path, "%s", files_path("x.h5"));
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read),
        cmocka_unit_test(labels_are_read),
        cmocka_unit_test(wrong_records_are_refused),
        cmocka_unit_test(what_is_no_text_is_named),
        cmocka_unit_test(compressed_text_is_read),
        cmocka_unit_test(each_target_is_learnt_once),
        cmocka_unit_test(files_are_read_back),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(fronts_that_lie_are_refused),
        cmocka_unit_test(examples_are_known_by_their_names),
        cmocka_unit_test(a_full_disk_is_named),
        cmocka_unit_test(other_files_are_read_or_refused),
        cmocka_unit_test(rows_that_cannot_be_there_are_refused),
        cmocka_unit_test(damaged_rows_are_refused),
        cmocka_unit_test(other_compression_is_named),
        cmocka_unit_test(interrupts_are_heard),
        cmocka_unit_test(a_pipe_that_nobody_writes_to_is_left),
        cmocka_unit_test(directories_are_read),
    };
    return cmocka_run_group_tests_name("data", tests, setup, files_teardown);
}
