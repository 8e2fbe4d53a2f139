// SPDX-License-Identifier: Apache-2.0
// What the files of host/train/pass*.c share.
#pragma once

#include "cmodel/command.h"
#include "cmodel/row_work.h"
#include "cmodel/tiles.h"
#include "common/pool.h"
#include "device/device.h"
#include "device/mover.h"
#include "engine/depend.h"
#include "model/arch.h"
#include "pack/layout.h"
#include "store/params.h"
#include "store/store.h"
#include "store/turned.h"
#include "train/batch.h"
#include "train/loss.h"
#include "train/program.h"

enum {
    PASS_CHANNELS = 64,
    PASS_PROGRAM = 4096, // commands of a run, at most
    PASS_DESC_BEATS = 2 + 2 * PASS_CHANNELS,
    NO_UNIT = INT32_MAX,
};

// What the forward pass keeps of an item: beats in the stash or the rows window.
struct kept {
    int stream;      // its number in the weight stream, -1: it is not there
    uint64_t turned; // what it wrote, blocks along rows
    uint64_t tiles;  // of Q, K, V: a matrix a head, blocks along the head
    uint64_t row;    // what a norm read
    uint64_t slope;  // of GELU
};

// The gradient of what lies in a place, one item's at a time.
struct place_grad {
    uint64_t tiles, turned;
    int tiles_kblocks; // of one matrix
};

struct tensor_grad {
    uint64_t off, record; // beats in the gradient window; record 0: it has none
    int layer, rows, cols, unit;
    bool inputs_are_rows;
    uint32_t flags, peak;
};

// Beats of the windows that grow with the model.
struct pass_extent {
    uint64_t weights, stash, rows, sums;
};

// Memory of the device: addresses, and beats of each window.
struct pass_memory {
    uint64_t weight_addr[PASS_CHANNELS], stash_addr[PASS_CHANNELS], kv_addr[PASS_CHANNELS];
    uint64_t input_addr, result_addr, rows_addr, grad_addr, desc_addr, prog_addr;
    struct pass_extent size;
    uint64_t input_beats, result_beats;
    int prog_most;
};

struct pass_span {
    uint64_t begin, end;
};

// A layer, or what is behind the last one: what it has of the windows. Where the device does not
// hold all, those that stream have two places by turns (pass_stream.c).
struct pass_unit {
    struct pass_span stash, rows, sums;
    uint64_t tiles; // beats in host.tiles, of its sums
    int slot;       // -1: it stays in the device's memory
    uint8_t *kept;  // of the host: its stash and rows while its place is another's
};

// What is where in the windows.
struct pass_places {
    uint32_t kv_records, kv_record, kv_layer; // beats of all K, of a record, of all
    uint64_t rot_off[2], rot_beats;           // input window: forward, turned back
    uint64_t residual, dx;                    // rows window
    uint64_t *entry;        // [n_layer + 1] what enters each layer; the residual, where it may
    uint64_t *entry_turned; // [n_layer] stash: the same as X, of an encoder
    uint64_t attention;     // rows window: a chunk's result of it, between two programs
    uint64_t scores;        // the same, of an encoder's head: scores, gradients of probabilities
    struct pass_unit *unit; // [n_layer + 1]
    int streamed;           // of the units
    int n_items;
    struct kept *kept; // [n_items], pass_item()
    uint64_t *w_off, *wt_off;
    struct place_grad grad[MR_PLACES];
    uint64_t gain_turned, p_turned, ds_turned, ones;
};

// Memory of the host.
struct pass_host {
    struct tensor_grad *tensors;
    int32_t *tiles; // all sums, unit by unit
    uint64_t tiles_beats;
    float *row_grad;
    float *logits;
    uint8_t *image[PASS_CHANNELS]; // of a matrix that the host writes
    uint8_t *item;                 // of an item of the streams, one channel
};

// What the host computes of an encoder: the norm in front of the first layer, and the classifier.
struct pass_host_tensor {
    size_t tensor;
    size_t count; // elements; memory is padded with zeros
    float *weights, *gradient;
};

enum { PASS_HOST_TENSORS = 6 }; // gain and bias; those of the classifier
struct pass_encoder {
    struct pass_host_tensor of[PASS_HOST_TENSORS];
    float *read;   // [most_rows][d.d]: of the norm in front
    float *first;  // the first row of each text, of n_embd; room for [most_rows][d.d]
    float *scores; // [2][chunk][pass_most_keys()] of a head
};

// A sum of gradients that waits until its sides' place is needed, or is done (pass_gradient.c).
struct pass_sum {
    struct mr_pass_program program; // whose item it is of
    size_t tensor;
    uint64_t rows_off, cols_off; // the two sides, `turned`
    int row, col;                // up to here it is done: rows, and columns of the next 32
};

struct pass_sums {
    struct pass_sum *of; // [tensors] in the order in which they came
    int first, count;    // those before `first` are done
};

// The micro-batch in work.
struct pass_batch {
    int rows, kblocks, cols; // cols: of matrices whose columns are rows
    int *pos, *start, *end;  // [most_rows] of each row's sequence: rows of the batch
    bool live[MR_PLACES];
    bool residual_turned; // its gradient is in the stash as it is now
};

// Which gradients the backward pass makes of what an item read and wrote (pass_learns.c).
struct pass_flow {
    bool reads, writes;
};

// What a unit needs in its place. The backward pass reads of W the gains of norms.
enum { PASS_MATRICES = 1, PASS_VECTORS = 2, PASS_W = 3, PASS_WT = 4, PASS_KEPT = 8 };

// A place of units that stream, and the copy under way: what leaves it, then what comes.
struct pass_slot {
    struct mr_pass *p;
    int unit;     // whose it is, -1: nobody's
    unsigned has; // what of it is there or on its way
    struct mr_move move;
    bool moving;
    int keeps, sums; // units whose stash, whose sums leave; -1: none
    unsigned brings;
};

struct pass_stream {
    struct mr_mover *mover; // NULL: all units stay
    struct pass_slot slot[2];
    int *list;     // [at.streamed] the units
    int use;       // of a pass: the last unit that was in work, first to last and back
    int uses;      // the pass ends there
    bool learns;   // a backward pass comes
    uint64_t sums; // bytes of them that have left
};

struct run;

// Puts parts of sums that wait into programs: `begin` as one begins; `fill` before its next command
// in `queue`, which has to wait until `needs` for others. Called by way of this, since what is left
// of the sums makes programs of its own.
struct pass_filler {
    void (*begin)(struct run *r);
    void (*fill)(struct run *r, int queue, double needs);
};
extern const struct pass_filler pass_fills_pauses; // pass_gradient.c

struct mr_pass {
    struct pass_filler filler;
    struct mr_device *dev;      // NULL: programs are only shown
    const char *name;           // of the device, for messages
    mr_pass_show *begin, *show; // NULL: to nobody
    void *show_arg;
    struct mr_pass_program now; // the program in work, but for its commands
    struct mr_pass_counts counts;
    struct mr_geometry g;
    const struct mr_config *c;
    struct mr_dims d;
    const struct mr_store *weights;
    struct mr_pool *pool;
    int most_rows, chunk;
    bool recompute;
    uint32_t limit;
    uint8_t *choice;        // [tensors] MR_CHOICE_*
    struct pass_flow *flow; // [n_items], pass_flow()
    bool tables_learn;
    struct pass_memory mem;
    struct pass_places at;
    struct pass_host host;
    struct pass_encoder *encoder; // NULL: it is none
    struct pass_batch batch;
    struct pass_sums sums;
    struct pass_stream stream;
    uint64_t room; // bytes of a channel's memory; 0: not limited
    bool least;    // all units stream
};

// n > 0.
static inline int bit_length(uint32_t n)
{
    return 32 - __builtin_clz(n);
}

static inline struct kept *pass_item(const struct mr_pass *p, int layer, int item)
{
    return &p->at.kept[layer * mr_arch_of(p->c)->block.count + item];
}

static inline struct pass_flow *pass_flow(const struct mr_pass *p, int layer, int item)
{
    return &p->flow[layer * mr_arch_of(p->c)->block.count + item];
}

// What the host has of a tensor's sum, at so many beats of the gradient window.
static inline const int32_t *pass_sum_on_host(const struct mr_pass *p, const struct tensor_grad *t,
                                              uint64_t beats)
{
    const struct pass_unit *u = &p->at.unit[t->layer];
    return p->host.tiles + (beats - u->sums.begin + u->tiles) * (MR_BEAT / 4);
}

// Are the unit's sums still on the device?
static inline bool pass_has_sums(const struct mr_pass *p, int unit)
{
    int slot = p->at.unit[unit].slot;
    return slot < 0 || p->stream.slot[slot].unit == unit;
}

static inline int pass_chunk_rows(const struct mr_pass *p, int first)
{
    return p->batch.rows - first < p->chunk ? p->batch.rows - first : p->chunk;
}

static inline int pass_blocks(int rows)
{
    return (rows + 31) / 32;
}

// Layers and, but for an encoder, what is behind the last one.
static inline int pass_units(const struct mr_pass *p)
{
    return p->c->n_layer + (mr_items_of(p->c, p->c->n_layer)->count > 0);
}

// Rows that are whole chunks and whole groups of columns of all channels.
static inline int pass_whole(const struct mr_pass *p)
{
    int whole = p->chunk;
    while (whole % 64)
        whole += p->chunk;
    return whole;
}

// Does an item of the list behind norm i read what it writes?
static inline bool pass_x_is_read(const struct mr_list *list, int i)
{
    int reader = i + 1;
    while (reader < list->count && list->items[reader].from != MR_X &&
           list->items[reader].to != MR_X)
        reader++;
    return reader < list->count && list->items[reader].from == MR_X;
}

// Whether something in front of it reads the gradient of what item i wrote. What a norm writes
// back, the residual of an encoder, has always one.
static inline bool pass_is_live(const struct mr_pass *p, const struct mr_item *item)
{
    return p->batch.live[item->to] || item->back;
}

static inline int place_lanes(const struct mr_pass *p, enum mr_place place)
{
    return mr_axis_padded(&p->d, mr_place_axis(place));
}

// Has the gradient of this tensor a sum?
bool pass_learns(const struct mr_pass *p, int layer, const struct mr_item *item, enum mr_part part);
// Does the backward pass come down to this layer?
bool pass_reaches(const struct mr_pass *p, int layer);
// Fills p->flow from p->choice (pass_learns.c).
void pass_find_flow(struct mr_pass *p);

// Refuses a model, a micro-batch or a chunk that the device does not hold (pass_fits.c).
int pass_fits(const struct mr_pass *p, struct mr_error *err);

// ---- a program and its run (pass_run.c) --------------------------------------------------------

// When commands begin and end, by estimate: in time for what a program has to wait for.
struct run_time {
    double free[MR_QUEUES];                         // the queue's last command is done
    double written[MR_MEMORIES], read[MR_MEMORIES]; // the last that does so is done
    unsigned reads, writes;                         // of the command whose time is not known
    int known;                                      // commands whose is
    int first;                                      // row of the batch that is row 0
};

// Rows of a sum in activation memory.
enum { RUN_PARTS = 6 };
struct run_part {
    int sum, row, rows; // rows 0: none
};

struct run_parts {
    int places, base; // in activation memory, one behind the other
    struct run_part part[RUN_PARTS];
    int oldest;
    int sum, row;  // what is loaded next; row -1: what the sum has left
    uint64_t only; // of sums that read this
    bool all;      // a program of nothing else
    bool busy;
};

struct run {
    struct mr_pass *p;
    struct mr_command *cmds, stream; // stream: of the next product
    struct mr_depend *depend;
    int16_t *tensors; // [count] of sums, the tensor
    int8_t *items;    // [count] of the layer
    int count, rows, tensor, item;
    struct run_time time;
    struct run_parts parts;
    int rc;
    struct mr_error *err;
};

// Regions of activation memory, by the place that stands for them in dependencies.
enum { NO_MEMORY = 0 };
unsigned run_memory(int memory);
unsigned run_place(enum mr_place place);
unsigned run_row_memory(bool second);

// A run of `rows` rows.
int run_begin(struct run *r, struct mr_pass *p, int rows, struct mr_error *err);
struct mr_command *run_add(struct run *r, unsigned op, unsigned reads, unsigned writes);
// END, and to the device. Frees what run_begin() took.
int run_end(struct run *r);
// The time of all commands so far, whose fields are set.
void run_time(struct run *r);

void run_load_rows(struct run *r, int first, int rotary); // table and angles of the batch's rows
// Rows of the model's width at row `first` of a region of the rows window.
void run_fetch(struct run *r, uint64_t off, int first, bool second, bool add);
void run_save(struct run *r, uint64_t off, int first, bool second);
// FETCH_ROWS or SAVE_ROWS of rows of so many lanes, which begin there.
struct mr_command *run_rows(struct run *r, unsigned op, uint64_t off, int lanes, bool second);
// Gain and bias of a norm, and a matrix for the next product, from so many beats of the weights on.
// Returns where the matrix ends.
void run_stream_vectors(struct run *r, uint64_t off);
uint64_t run_stream_weights(struct run *r, uint64_t off, int kblocks, int cols, bool bias);
void run_stream_stash(struct run *r, uint64_t off, int all_kblocks, int first_kblock, int kblocks,
                      int first_col, int cols);
// Columns of a matrix as rows of activation memory, of the region `writes`: to its beginning and
// slot 0, unless the command gets others.
struct mr_command *run_load_act(struct run *r, uint64_t off, int all_kblocks, int first_kblock,
                                int kblocks, int first_col, int rows, unsigned writes);
// Columns of a row memory: to activation memory where `writes` names its region; to the stash by
// run_copy_turned().
struct mr_command *run_copy(struct run *r, bool second, int cols, unsigned writes);
void run_copy_turned(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                     int first_col, int begin);
struct mr_command *run_matmul(struct run *r, int kblocks, int cols, unsigned reads,
                              unsigned writes);
void run_matmul_turned(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                       int first_kblock);
void run_matmul_tiles(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                      int first_kblock, int tiles_kblocks);
void run_matmul_rotary(struct run *r, struct mr_command *c);

// Works of MOVE_ROWS, in place (mr_row_work_writes()): of a norm, and of scores of rows `first`..
// of the batch, whose columns are keys `key`.. .
void run_norm_work(struct run *r, unsigned work);
void run_softmax_work(struct run *r, unsigned work, int layer, int first, int key, int cols);

// ---- encoders (pass_encoder.c) -----------------------------------------------------------------

int pass_encoder_open(struct mr_pass *p, struct mr_error *err);
void pass_encoder_close(struct mr_pass *p);
// The weights that the host needs, as the store has them now.
void pass_encoder_weights(struct mr_pass *p);
// The norm in front, of row `row` in place: x[d.d].
void pass_front(struct mr_pass *p, int row, float *x);
// From its result's gradient, host.row_grad and what the first layer's matrices add, to that of
// what it read, and those of its vectors.
int pass_front_back(struct mr_pass *p, struct mr_error *err);
// The classifier of the last rows, which are in the device's memory; for a gradient theirs takes
// their place.
int pass_classify(struct mr_pass *p, const struct mr_batch *batch, bool gradient,
                  struct mr_loss *loss, struct mr_error *err);
// Scores of all rows of a head and gradients of probabilities become P and dS.
int pass_softmax(struct mr_pass *p, int layer, struct mr_error *err);
// Where scores of the rows from `first` on are, or gradients of their probabilities.
uint64_t pass_scores(const struct mr_pass *p, int first, bool gradients);

// Keys of a chunk's rows: from column pass_first_key() on so many.
int pass_first_key(const struct mr_pass *p, int first);
int pass_keys(const struct mr_pass *p, int first, int rows);
int pass_most_keys(const struct mr_pass *p);

// ---- passes ------------------------------------------------------------------------------------

struct mr_pass_options;
// A pass without its memory, on a device of `room` bytes a channel (0: not limited). On failure
// *pass is NULL.
int pass_new(struct mr_pass **pass, const struct mr_geometry *g, const char *name, uint64_t room,
             const struct mr_config *config, const struct mr_pass_options *options,
             struct mr_error *err);
int pass_holds(const struct mr_pass *p, size_t rows, struct mr_error *err);
// Where each row of the batch is; there is room for all.
void pass_place_rows(struct mr_pass *p, const int *lengths, int n_sequences);
// The windows of everything, within p->room (pass_place.c).
int pass_place(struct mr_pass *p, struct mr_error *err);
// Where windows of the host's port lie, which reaches all channels. Rows and logits lie where sums
// of gradients do not: they come and go at the same time.
enum { PASS_BUFFERS = 6 };
struct pass_buffer {
    uint64_t beats, *addr;
    int channel;
};
void pass_buffers(struct mr_pass *p, struct pass_buffer buffers[PASS_BUFFERS]);

// ---- units that stream (pass_stream.c) ---------------------------------------------------------

size_t pass_item_bytes(const struct mr_pass *p); // the most that host.item holds
// An item of a stream, to its place. Not beside a copy of units.
int pass_write_item(struct mr_pass *p, const struct mr_store *store, int s, bool turned,
                    struct mr_error *err);
// What of a unit's W and Wt, to its place.
int pass_write_unit(struct mr_pass *p, int unit, unsigned what, struct mr_error *err);
uint64_t pass_unit_bytes(const struct mr_pass *p, int unit, unsigned what); // of all channels
int pass_stream_open(struct mr_pass *p, unsigned clock_khz, struct mr_error *err);
void pass_stream_close(struct mr_pass *p);
// A pass begins; `learns`: with its backward pass.
void pass_stream_begin(struct mr_pass *p, bool learns);
// The programs behind this are the layer's: waits until it is there, and sends for the next one.
int pass_stream_use(struct mr_pass *p, int layer, struct mr_error *err);
// An item of the backward pass is done: so what leaves may be, and the next one can come.
void pass_stream_ran(struct mr_pass *p);
// Waits for what is on its way.
void pass_stream_end(struct mr_pass *p);
// A micro-batch to the device; its loss, and for a gradient logits become it, zero where there is
// no target; that to the device (pass_batch.c).
int pass_write_batch(struct mr_pass *p, const struct mr_batch *batch, struct mr_error *err);
int pass_loss(struct mr_pass *p, const struct mr_batch *batch, bool gradient, struct mr_loss *loss,
              struct mr_error *err);
int pass_write_logits_gradient(struct mr_pass *p, struct mr_error *err);
int pass_forward(struct mr_pass *p, struct mr_error *err);
// Does each product behind a block's attention wait for it?
bool pass_waits_for_attention(const struct mr_pass *p);
// The forward pass of a layer once more, for its stash.
int pass_layer_again(struct mr_pass *p, int layer, struct mr_error *err);
int pass_backward(struct mr_pass *p, struct mr_error *err);
// The gradient of tensor i from the matrices of two sides, `turned` both: one more sum that waits,
// if the tensor learns.
int pass_grad(struct mr_pass *p, size_t tensor, uint64_t rows_off, uint64_t cols_off,
              struct mr_error *err);
// Now those that read this matrix, because something else takes its place.
#define EVERYTHING UINT64_MAX
int pass_sums(struct mr_pass *p, uint64_t off, struct mr_error *err);
// Is one of the layer's not done yet?
bool pass_sums_wait(const struct mr_pass *p, int layer);
// A unit's sums to the host.
int pass_read_sums(struct mr_pass *p, int unit, struct mr_error *err);
// Sums and their records to the host.
int pass_read_gradients(struct mr_pass *p, struct mr_error *err);
