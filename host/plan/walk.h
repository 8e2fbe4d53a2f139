// SPDX-License-Identifier: Apache-2.0
// The state of a walk over a program (job.h), and what its units have in common: commands and
// semaphores. Times are core cycles from the start of the run. What
// is not known yet, because it follows from something that the walk has not come to, is UNKNOWN.
#pragma once

#include "engine/program.h"
#include "plan/job.h"

#define UNKNOWN (-1.0)

// Sizes of the RTL's buffers, and of what the walk keeps about them.
enum {
    W_DEPTH = 256,      // credits of the weight reader (millrace_core)
    W_BURST = 64,       // beats of its bursts (mr_reader)
    KV_DEPTH = 128,     // credits of the KV reader (millrace_core)
    KV_CHUNK = 16,      // beats of its bursts (mr_reader)
    TILES = 64,         // entries of the tile FIFO (mr_stream)
    JOBS = 64,          // units complete and not read (mr_epilogue)
    QUANTUM = 256,      // beats of one port before a channel serves another (sim/memory/memory.c)
    PROMPT = 16,        // beats that a consumer which takes them as they come may hold (mr_reader)
    READ_QUANTUM = 512, // beats of KV before a weight burst's turn (mr_reader)
    FETCH = 8,          // commands read at a time (mr_fetch)
    SECTION = 16,       // k-blocks that share a beat of scale codes (docs/inside/layout.md)
    CHUNKS = 4096,      // sections between reader and array: fewer than ring and FIFO together hold
    TAKEN = 128,        // tokens in the array's result FIFO, R = 32
    UNITS = 2048,       // units in the staging memory: two a token
    KV_KEPT = 64,       // chunks that KV_DEPTH beats may lie in
    HOST_OPS = 2048,    // transfers of the host port under way
};

// Fixed latencies in cycles, counted along the registers of the modules named.
enum {
    L_READ = 4,    // AR and R registers, FIFO (mr_reader, mr_fifo)
    L_JOB = 11,    // stream command dispatched to first AR (mr_stream_ctl, mr_read_jobs)
    L_RING = 4,    // beat leaves the FIFO to step (mr_stream, mr_array_ctrl)
    L_FREE = 4,    // step to place in the ring free (mr_array_ctrl, mr_stream)
    L_SPLIT = 8,   // between two commands of the splitter (mr_stream_ctl, mr_queue)
    L_SIGNAL = 4,  // done to the waiting command's handshake (mr_queue, mr_sems)
    L_ARRAY = 3,   // handshake to first step (mr_array_ctrl)
    L_RESULT = 13, // last step to result (mr_array)
    L_STAGE = 30,  // result to staging memory and unit at work (mr_epilogue, K_DST + 4)
    L_RES = 35,    // result to residual row and exponent stored, done (mr_epilogue, K_TOP + 3)
    L_STORED = 14, // block read to done, beside 32 / V beats (mr_quant, mr_vec_out, mr_epilogue)
    L_PLAN = 17,   // ATTEND taken to its first group and KV jobs (mr_attn_plan)
    L_LOAD = 8,    // (mr_attn_load)
    L_QK = 18,     // last step of QK to its maximum stored (mr_attn_lane, mr_attn_qk)
    L_MERGE = 5,   // hand-over and tree, beside a cycle a row and head (mr_attn, mr_attn_tree)
    L_P = 10,      // PV's start to its first probability (mr_attn_prob)
    L_PV = 4,      // last step to accumulator (mr_attn_mac)
    L_OUT = 29,    // to the first block, beside its beats (mr_attn_out)
    L_RECORD = 10, // states of a record beside codes and data (mr_kvstore)
    L_CODES = 34,  // a beat of codes (mr_kvstore)
    L_SPAN = 6,    // states of a RESULT span beside its data (mr_epilogue)
    L_ASK = 2,     // request of a host client to AR (mr_hostrd)
    L_GOT = 1,     // R beat to host client (mr_hostrd)
    L_FETCHED = 4, // command's beat to dispatch; last beat to next request (mr_fetch, mr_seq)
    L_PHASE = 4,   // phase of LOAD_ROWS to its first request at the port (mr_rows)
    L_WRITE = 8,   // data complete to W at the port, B to client (mr_writer)
};

enum { SEMAPHORES = 16, QUEUES = 5 };
enum flow { FLOW_W, FLOW_KV, FLOW_HOST_READ, FLOW_HOST_WRITE };

struct cmd {
    const struct mr_command *c;
    unsigned op, wait, signal;
    int queue, before; // the command 16 (reader: 32) places earlier in the same queue, or -1
    double dispatched, ready, done;
    enum mr_plan_state cause; // of a late start
};

struct signal {
    double at;
    int command;
};

// Beats of the weight stream that come in one burst and belong to one column group, or to a pair of
// LayerNorm vectors.
struct chunk {
    int command, rows, beats, group;
    int64_t row_end, beat_end, tile;
    bool vec, cmd_first, cmd_last, tile_first, tile_last;
    double arrived, taken, freed; // of its last beat or k-row
};

struct host_op {
    double ready;
    int beats, command;
    bool write, local; // local: on the channel that is followed
};

// A group of rows and heads (mr_attn_plan) in one of its two passes.
struct kv_pass {
    int64_t beats;
    double steps; // of all beats
};

struct walk {
    const struct mr_plan_job *job;
    const struct mr_geometry *g;
    const struct mr_plan_memory *m;
    const struct mr_plan_row *rows;
    struct mr_plan_run *out;
    struct mr_program program;
    int n_rows, n_logits, slots, v; // slots: of a token; v: lanes, 4 N
    struct cmd *cmds;
    int count, dispatched, next[QUEUES]; // next command of each queue
    double dispatch_time, fetch_time;
    int fetched, fetch_asked;
    struct signal *signals[SEMAPHORES];
    int signalled[SEMAPHORES], waited[SEMAPHORES];
    double end; // of the run

    struct {              // channel 0
        double free, gap; // next transfer; start of the last idle time before it
        double gap_end;
        int turn; // beats left to the read port
        enum flow last;
        enum flow reads; // the last of weights and KV, and how many beats of it in a row
        int read_beats;
    } bus;
    struct host_op *ops[2]; // reads, writes: rings
    int op_head[2], op_count[2];

    struct {                    // weight stream, from the reader to the ring
        int command, group, at; // next piece: beat in its column group
        int64_t made, read, used, beats, rows, tiles;
        struct chunk chunk[CHUNKS];
        int64_t in_ring, credit, place; // chunks: in the ring; where the last look-up ended
        int job;                        // the reader's next job; the one in work:
        int64_t asked, job_end;         // beats of the stream
        double job_ready;
        double time;
    } s;

    struct { // array and epilogue
        double time, last_fire, take, unit_time;
        int live, command; // live: slots of the row group before
        int64_t popped, tile_chunk, tokens, units, column_units;
        double pop[TILES], taken[TAKEN], unit[UNITS];
        int results_left; // RESULT jobs of the command in work
    } a;

    struct { // LOAD_ROWS
        int phase, left, asked;
        double time, before;
        bool busy;
    } load;
    struct { // STORE_KV
        int left;
        double time;
        bool busy;
    } store;
    struct { // attention
        bool busy, pv;
        int token, rows, head, heads; // the group: rows, heads of it
        int64_t left;                 // beats of the pass still to read
        double beats, steps, per_beat, asked, time, load, hand, out, planned;
        int64_t total, kept;
        int64_t kept_end[KV_KEPT];
        double kept_at[KV_KEPT];
        int64_t kept_from;
        double since;
    } t;
};

// Earliest start of the next command of a queue; UNKNOWN. -1: the queue has no more.
int mr_walk_head(const struct walk *w, int queue);
int mr_walk_next(const struct walk *w, int queue, int from); // its first command from there on
double mr_walk_ready(struct walk *w, int command);
void mr_walk_take(struct walk *w, int command); // the queue goes on behind it
void mr_walk_done(struct walk *w, int command, double at);
void mr_walk_ask(struct walk *w, double ready, int beats, int command, bool write, bool local);

static inline double later(double a, double b)
{
    return a > b ? a : b;
}

// The units of the walk. What advances does what can be known; true if that was anything. A
// request is the next read; UNKNOWN.

// The weight stream: splitter, reader and ring.
bool mr_stream_advance(struct walk *w);
double mr_stream_request(struct walk *w, int *beats);
void mr_stream_arrived(struct walk *w, double at, int beats);

// The array and its epilogue.
bool mr_array_advance(struct walk *w);
void mr_array_result_written(struct walk *w, int command, double at);

// Attention.
bool mr_attention_advance(struct walk *w);
double mr_attention_request(struct walk *w, int *beats);
void mr_attention_arrived(struct walk *w, double at, int beats);

// Vector unit and writer.
bool mr_vector_advance(struct walk *w);
void mr_vector_loaded(struct walk *w, double at, int beats);
bool mr_writer_advance(struct walk *w);
void mr_writer_written(struct walk *w, double at);
