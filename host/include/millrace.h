// SPDX-License-Identifier: Apache-2.0
// Millrace: GPT-J and GPT-2 by weight streaming. The public C API; examples/generate.c is a short
// use of it.
//
// Conventions. Functions return 0 or a negative mr_status (millrace_status.h) and then leave one
// line in *err, which may be NULL. Objects are made by *_open or *_load, which set the pointer to
// NULL on failure, and are released by *_close, which accepts NULL. Strings are UTF-8. One session
// is used by one thread at a time; a model may be shared by sessions of several threads after it is
// loaded.
#ifndef MILLRACE_H
#define MILLRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace_status.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) // exported by libmillrace.so: what stands in this file
#endif

#define MR_VERSION_STRING "0.1.0"

// MR_VERSION_STRING of the library: another minor version may have other structures (before 1.0).
const char *mr_version(void);

#define MR_ERROR_TEXT 512

// Zero-initialise before use. Holds no resources.
struct mr_error {
    int status;               // 0 or an mr_status
    char text[MR_ERROR_TEXT]; // one line: what failed, where, what to do
};

// ---- models ------------------------------------------------------------------------------------

struct mr_model;

enum mr_weight_format {
    MR_WEIGHTS_MXINT8, // OCP MXINT8: 8.25 bits a weight
    MR_WEIGHTS_MXFP4,  // layer matrices in OCP MXFP4 (4.25 bits), the head's in MXINT8
};

struct mr_load_options {
    enum mr_weight_format format; // for Hugging Face directories; a packed file has its own
    bool no_smoothing;            // leave out the exact power-of-two channel smoothing
    // Rounding with the errors of weights made up for by others, for directories. NULL: without;
    // "self": with text that the model samples from itself, the same each time; else a text file
    // like what the model will read (up to 16384 tokens of it are used). docs/inside/numerics.md,
    // rule 12.
    const char *calibrate;
    // The directory of a PEFT adapter (LoRA) of a directory's model, whose pairs are added to its
    // matrices before anything else; NULL: none.
    const char *adapter;
    // Quantise nothing: the model is good for mr_model_get_info() and text only. A packed file is
    // not read as a whole: tensors beyond 1 MiB are compared with their checksums only if `verify`
    // (they always are when weights are wanted).
    bool describe, verify;
    bool text;    // refuse a model without a tokenizer, before its weights are read or made
    bool encoder; // it is an encoder, for a timeline or a comparison: it has no sessions
    // Called now and then while weights are quantised, made from a seed or checked, with bytes of
    // the checkpoint, of the weights or of the file's tensors done and in all; a non-zero return
    // stops with MR_ERR_INTERRUPTED. May be NULL.
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
};

enum mr_model_kind { MR_KIND_SAFETENSORS, MR_KIND_TORCH, MR_KIND_PACKED, MR_KIND_SYNTHETIC };

struct mr_model_info {
    enum mr_model_kind kind;
    int files; // that the weights are in; 0 if synthetic
    // Bytes of the checkpoint's tensors by type; of a packed file only those of the embedding.
    uint64_t f32_bytes, f16_bytes, bf16_bytes;
    uint64_t file_bytes;      // of a packed file, else 0
    uint64_t embedding_bytes; // of one token's row, and its position's where there is such a table
    int vocab_size, n_positions, n_embd, n_layer, n_head, head_dim, rotary_dim, n_inner;
    int eos_token_id; // -1 if the model has none; the first of several (mr_model_is_eos())
    enum mr_weight_format format;
    bool smoothed, packed_file, has_tokenizer;
    bool calibrated; // rounded with mr_load_options.calibrate
    uint64_t parameters;
    uint64_t stream_bytes;    // read from memory for one token: all weights once
    uint64_t kv_bytes;        // of one position of one sequence, as stored
    bool encoder;             // reads texts and writes none
    const char *architecture; // "GPT-J", "GPT-2"; static
};

// A Hugging Face directory, a packed file, or "synthetic:gptj-6b[,layers=N][,vocab=N][,seed=N]":
// GPT-J-6B's shape (28 layers, vocabulary 50400 by default) with weights from a seed, for
// measurements; or that of gpt2, gpt2-xl, gpt3-xl, gpt3-175b, serial-6b, cerebras-2.7b,
// cerebras-6.7b, cerebras-13b, bert-base or minilm-l6. opt may be NULL (MXINT8, smoothing).
int mr_model_load(struct mr_model **model, const char *path, const struct mr_load_options *opt,
                  struct mr_error *err);
void mr_model_close(struct mr_model *model);
void mr_model_get_info(const struct mr_model *model, struct mr_model_info *info);

// Whether token `id` ends a text: any of the ids that config.json lists as eos_token_id.
bool mr_model_is_eos(const struct mr_model *model, int32_t id);

// Writes the packed form. `path` appears only when it is complete.
int mr_model_save(const struct mr_model *model, const char *path, struct mr_error *err);

struct mr_pack_stats {
    uint64_t input_bytes; // of the checkpoint's tensors
    uint64_t file_bytes;
    uint64_t stream_bytes; // read from memory for one token
    // Not empty: no shipped configuration of the engine can run the model, and these limits are
    // exceeded (docs/use/checkpoints.md). cpu: can, from the directory.
    char exceeds[256];
};

// Packs the Hugging Face directory `dir` into the file `path` without having the model in memory.
// `path` appears only when it is complete, even if the program is killed. opt may be NULL.
int mr_model_pack(const char *dir, const char *path, const struct mr_load_options *opt,
                  struct mr_pack_stats *stats, struct mr_error *err);

// Reads all tensors of the directory once, by as many threads, and does nothing with them: what
// packing is to be measured against.
int mr_model_plain_read(const char *dir, struct mr_error *err);

// Writes a packed file back as the Hugging Face directory `dir`, which must not exist or be empty
// and appears only when it is complete: the device's values, matrices in bf16 (exact), vectors in
// fp32. A smoothed model stays smoothed.
int mr_model_unpack(const struct mr_model *model, const char *dir, struct mr_error *err);

// How far a packed matrix is from the checkpoint's, in the checkpoint's units.
struct mr_quality {
    char name[48]; // of the tensor without ".weight"
    enum mr_weight_format format;
    int rows, cols;
    double rms_weight, rms_error, largest_error;
};

// Compares the matrices of `model` with those of the Hugging Face directory `dir` that it was made
// from. *list: one entry a matrix, in new memory that the caller frees.
int mr_model_compare_weights(const struct mr_model *model, const char *dir,
                             struct mr_quality **list, size_t *count, struct mr_error *err);

// Tokens of `size` bytes of text, in new memory that the caller frees. Special tokens in the text
// ("<|endoftext|>") become themselves if parse_special.
int mr_model_encode(struct mr_model *model, const char *text, size_t size, bool parse_special,
                    int32_t **ids, size_t *count, struct mr_error *err);

// The bytes of tokens, in new NUL-terminated memory that the caller frees. *size without the NUL.
int mr_model_decode(const struct mr_model *model, const int32_t *ids, size_t count, char **text,
                    size_t *size, struct mr_error *err);

// ---- sessions: a model on a device -------------------------------------------------------------

struct mr_session;

struct mr_session_options {
    int max_seqs;  // sequences at the same time; 0 means 1
    int chunk;     // most tokens a device run; 0: all that fit
    bool two_pass; // second pass over the residue of activations (more exact, same weight traffic)
    bool check;    // sim: only: compares every command's result with the C model (MR_ERR_DIFF)
    // Called while weights are copied to a device (xrt:), with bytes done and in all; a non-zero
    // return stops with MR_ERR_INTERRUPTED. May be NULL.
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
};

// device: "cpu:" (fp32 reference; needs a Hugging Face directory), "model:[config]" (bit-exact C
// model), "sim:[config][,memory=ideal|ddr4-2400|hbm2][,seed=N][,stalls=PERCENT][,check]" (the
// Verilated RTL), "xrt:[index][,unit=N][,bo=MIB]" (an Alveo card or its emulation,
// docs/board/xrt.md), "pci:[number]" (docs/board/driver.md); all but cpu: with ",capacity=SIZE"
// (512M, 8G) for less memory than there is: a model that is larger streams from the host in each
// pass (docs/use/streaming.md). sim: and model: with "units=N" stand for N engines of that kind
// (below), of which a session uses one. opt may be NULL. The model must outlive the session.
int mr_session_open(struct mr_session **session, struct mr_model *model, const char *device,
                    const struct mr_session_options *opt, struct mr_error *err);
void mr_session_close(struct mr_session *session);

#define MR_DEVICE_URI 256

// How many units a device URI stands for: engines that compute at the same time, each for a session
// of its own, used by a thread of its own. "sim:" and "model:" have what "units=N" says, else 1;
// "xrt:" the compute units of its xclbin, with "unit=K" 1; "cpu:" 1. Nothing is opened: an error of
// the rest of the URI comes when a session is.
int mr_device_units(const char *device, int *units, struct mr_error *err);

// The URI of one of them, 0..units - 1, for mr_session_open().
int mr_device_unit(const char *device, int unit, char uri[MR_DEVICE_URI], struct mr_error *err);

// Sequences: each has its own KV store.
int mr_session_seq_new(struct mr_session *session, int *seq, struct mr_error *err);
void mr_session_seq_free(struct mr_session *session, int seq);

// Positions so far; -1: there is no such sequence.
int mr_session_seq_length(const struct mr_session *session, int seq);

// Makes a sequence `length` positions long: shorter, or longer without computing them, when its KV
// store holds whatever is there (zeros on cpu:; for measurements at a position).
int mr_session_seq_set_length(struct mr_session *session, int seq, int length,
                              struct mr_error *err);

// One token of one sequence.
struct mr_row {
    int seq;
    int32_t token;    // 0..vocab_size - 1
    bool want_logits; // whether this row's logits are written
};

// Appends rows to their sequences, in order (prefill and decode are the same) and writes
// logits[rows that want them][vocab_size] in order of the rows. On a device, a step that fails
// changes nothing and may be repeated; on cpu: a refused one.
int mr_session_step(struct mr_session *session, const struct mr_row *rows, int count, float *logits,
                    struct mr_error *err);

// Where a step is that is under way. A step of more rows than fit the device takes several runs.
struct mr_progress {
    uint64_t tokens;    // that the session had computed when the device's present run began
    int rows;           // tokens of this run
    int commands, done; // of its program, and finished ones; 0: not known (pci:). cpu: has layers
    int layer, layers;  // the layer in work, from 0; `layers`: what is behind the last of them
    double share;       // of the run's weights, that have been used; 0 where not known
    uint64_t cycles; // of the run so far; 0: the device does not count them, or not while it runs
    double seconds;  // of the run so far
};

// From now on progress(arg, p) is called while a step of the session runs, from its thread and a
// few times a second at most; a non-zero return ends the step with MR_ERR_INTERRUPTED. NULL: no
// more. What is computed, and the device's cycles, are the same with and without.
void mr_session_watch(struct mr_session *session,
                      int (*progress)(void *arg, const struct mr_progress *p), void *arg);

// Writes the KV store of a sequence's first `count` positions, whose tokens are tokens[count], to a
// file. `path` appears only when it is complete. Not on cpu:.
int mr_session_seq_save(struct mr_session *session, int seq, const int32_t *tokens, size_t count,
                        const char *path, struct mr_error *err);

// Reads such a file into a sequence, in place of what it had: it goes on as if it had computed the
// tokens itself, on any device with the same model. *tokens: in new memory that the caller frees.
// After a failure the sequence is as before, or empty if the device failed.
int mr_session_seq_load(struct mr_session *session, int seq, const char *path, int32_t **tokens,
                        size_t *count, struct mr_error *err);

// ---- sampling ----------------------------------------------------------------------------------

struct mr_sampling {
    float temperature; // 0: greedy (ties: the lowest id); else > 0
    int top_k;         // 0: all
    float top_p;       // 0 or 1: all
    uint64_t seed;     // same seed, same text on every device with the same bits and in every batch
    // Logits of tokens that the prompt or the new text has are divided by this if positive, else
    // multiplied (Keskar et al. 2019, as in transformers). 0 or 1: none; else > 0.
    float repetition_penalty;
    // OpenAI's: of a token that the new text has n times, n * frequency_penalty and, if n > 0,
    // presence_penalty are taken off its logit, after repetition_penalty. -2..2, 0: none.
    float frequency_penalty, presence_penalty;
};

enum mr_finish {
    MR_FINISH_LENGTH, // max_tokens
    MR_FINISH_EOS,
    MR_FINISH_STOPPED, // by the callback
    MR_FINISH_CONTEXT, // the model's positions are used up before max_tokens
    MR_FINISH_STOP_STRING,
    MR_FINISH_CANCELLED, // by mr_scheduler_cancel() or mr_scheduler_close()
    MR_FINISH_FAILED,    // mr_result.error says why
};

// ---- scheduler: continuous batching ------------------------------------------------------------
// Requests of different lengths share the steps of one session, join when a sequence is free and
// leave when they end. What a request gets does not depend on its neighbours.

#define MR_TOP_LOGPROBS_MAX 20

struct mr_scheduler;

struct mr_scheduler_options {
    // Most prompt tokens a step, 0: what the rest of a device run holds. All running requests get
    // their next token in each step, however long the prompts are that join: fewer mean shorter
    // waits for those, more mean that prompts are read sooner.
    int prefill_rows;
};

struct mr_logprob {
    int32_t id;
    double logprob; // natural logarithm of the probability by the model's logits, before sampling
};

// One token as it comes. Memory is valid during the call.
struct mr_token {
    size_t index; // of prompt and new tokens together
    bool prompt;  // a prompt's token (echo_logprobs)
    int32_t id;
    const char *bytes; // `size` bytes, often not whole characters; NULL without a tokenizer
    size_t size;
    bool has_logprob; // asked for, and not the first token, which nothing predicts
    double logprob;
    const struct mr_logprob *top; // the most probable tokens, first the largest
    int n_top;
};

struct mr_result {
    enum mr_finish finish;
    const struct mr_error *error; // MR_FINISH_FAILED, else NULL
    const int32_t *ids;           // new tokens, without end-of-text
    size_t count, prompt_count;
};

struct mr_request {
    const int32_t *prompt; // copied
    size_t prompt_count;
    int max_tokens; // new tokens at most; 0 only with echo_logprobs
    struct mr_sampling sampling;
    bool ignore_eos;         // tokens that end a text (mr_model_is_eos()) are tokens like any other
    const char *const *stop; // text ends before the first of these; UTF-8, not empty; copied
    int n_stop;
    bool logprobs;      // of new tokens
    bool echo_logprobs; // of the prompt's tokens
    int top_logprobs;   // 0..MR_TOP_LOGPROBS_MAX, with either
    // A sequence of the caller's that has the first `resident` tokens of the prompt (fewer than
    // all) and no others. The request goes on in it and leaves it to the caller, with what it has
    // run: mr_session_seq_length() says how many of prompt and new tokens. One request at a time.
    bool own_seq;
    int seq;
    size_t resident;
    // Called in mr_scheduler_step(); each may be NULL. `started`: it no longer waits. A non-zero
    // return ends the request (MR_FINISH_STOPPED). Text comes as whole UTF-8 characters,
    // NUL-terminated, and is held back while it may be the beginning of a stop string; tokens are
    // not. `done` is called once for each request that was accepted, the last time in
    // mr_scheduler_close().
    void (*started)(void *arg);
    int (*token)(void *arg, const struct mr_token *token);
    int (*text)(void *arg, const char *piece, size_t size);
    void (*done)(void *arg, const struct mr_result *result);
    void *arg;
};

// The session must outlive the scheduler; its sequences are shared with the caller's own. opt may
// be NULL. One thread at a time.
int mr_scheduler_open(struct mr_scheduler **scheduler, struct mr_session *session,
                      const struct mr_scheduler_options *opt, struct mr_error *err);
void mr_scheduler_close(struct mr_scheduler *scheduler);

// Queues a request, first come, first served. *id, which may be NULL, names it. May be called in a
// callback, as may mr_scheduler_cancel().
int mr_scheduler_submit(struct mr_scheduler *scheduler, const struct mr_request *request,
                        uint64_t *id, struct mr_error *err);

// Ends a waiting or running request in the next step; unknown and finished ones are no error.
void mr_scheduler_cancel(struct mr_scheduler *scheduler, uint64_t id);

// One device step for all running requests. 1: there is more to do, 0: idle. On failure all
// running requests end with MR_FINISH_FAILED; waiting ones stay.
int mr_scheduler_step(struct mr_scheduler *scheduler, struct mr_error *err);

struct mr_scheduler_info {
    int waiting, running;
    int step_requests, step_rows; // of the last step
};

void mr_scheduler_get_info(const struct mr_scheduler *scheduler, struct mr_scheduler_info *info);

// ---- generation from a list of prompts ---------------------------------------------------------

struct mr_stats;

struct mr_generate_options {
    int max_tokens; // new tokens at most
    struct mr_sampling sampling;
    bool ignore_eos;
    const char *const *stop; // as in mr_request
    int n_stop;
    // Called with text as it comes (whole UTF-8 characters, NUL-terminated, `prompt` its index in
    // the batch); non-zero ends this prompt (MR_FINISH_STOPPED). May be NULL.
    int (*text)(void *arg, int prompt, const char *piece, size_t size);
    void *arg;
    // Set to the session's statistics when the first max_seqs prompts have been read and have given
    // their first tokens: what comes later is decoding. May be NULL.
    struct mr_stats *after_prefill;
};

struct mr_generated {
    int32_t *ids; // new tokens, freed by mr_generated_free
    size_t count, prompt_count;
    char *text; // theirs, ending before a stop string; empty without a tokenizer
    size_t text_size;
    enum mr_finish finish;
};

// Generates from n prompts (token lists) at the same time, at most max_seqs of the session at once.
// out[n]; on failure nothing is left to free. A prompt's tokens do not depend on the batch.
int mr_generate(struct mr_session *session, const int32_t *const *prompts, const size_t *sizes,
                int n, const struct mr_generate_options *opt, struct mr_generated *out,
                struct mr_error *err);
void mr_generated_free(struct mr_generated *g);

// ---- training ----------------------------------------------------------------------------------
// A training's state is a directory: weights in fp32, moments, the units of gradients
// (docs/inside/store.md). A step adds up the gradients of micro-batches as integers and then
// updates everything or nothing, so the state is good whenever the program ends. Neither device,
// chunks, threads nor the order of micro-batches changes a bit (docs/inside/training.md). There is
// no dropout: rates in config.json (attn_pdrop, ..) are not applied, and 0 in the export.

struct mr_trainer;

// Makes the state of a new training in `dir`, which must not exist or be empty and appears only
// when it is complete, from the Hugging Face directory `model`, whose tokenizer is copied along.
// positions: 0, or more of them than the model's config.json has, up to 4096, which the state's
// config.json and exports then say. MR_ERR_USAGE where positions are learned (GPT-2).
int mr_trainer_create(const char *dir, const char *model, int positions, struct mr_error *err);

// The same of an encoder (BERT), which learns to tell texts apart by `count` labels
// (docs/use/bert.md). *drawn, unless NULL: which of pooler and classifier had to be drawn from
// `seed`, since the model has none, or one of another number of labels. MR_ERR_USAGE where it is no
// encoder. With mr_trainer_create() the state has the model's own labels.
enum { MR_DRAWN_CLASSIFIER = 1, MR_DRAWN_POOLER = 2 };
int mr_trainer_create_labels(const char *dir, const char *model, const char *const *labels,
                             int count, uint64_t seed, unsigned *drawn, struct mr_error *err);

// A LoRA adapter, which learns instead of the model (docs/train/lora.md).
struct mr_lora_options {
    int rank;                   // 1..512
    double alpha;               // above 0: the pair is multiplied by alpha / rank
    const char *const *targets; // names of modules ("q_proj"), which NULL ends; NULL: PEFT's choice
    uint64_t seed;              // that A is drawn from; B is zero
    const char *adapter; // NULL, or a PEFT adapter's directory, which it goes on from; then those
                         // above are not looked at
    const char *base; // what adapter_config.json calls the model; NULL: the path of its directory
};

// The same for the state of an adapter. It has no weights of the model: whoever opens it reads them
// in its directory, which must stay as it is.
int mr_trainer_create_lora(const char *dir, const char *model, int positions,
                           const struct mr_lora_options *lora, struct mr_error *err);

struct mr_trainer_options {
    int tokens; // the most of a micro-batch; 0: as many as the model has positions
    int chunk;  // tokens a device run, a multiple of 32; 0: all that fit. Changes no bit
    // Layers keep no stash, and the backward pass makes it again: less memory, more work, the same
    // bits. A state does not know of it.
    bool recompute;
    // NULL, or the Hugging Face directory that the state was made from, wherever it lies now: the
    // state of another model, or of one with other weights, is MR_ERR_FIT.
    const char *model;
    int positions; // with `model`: as in mr_trainer_create()
    // Patterns of tensors' names, as a shell has them, each with '!' in front to take tensors out
    // again; the last one that matches counts. NULL ends them, and NULL is none. What is frozen
    // keeps its weights, and its gradient is not in the norm.
    const char *const *freeze, *const *no_decay;
    // With `model`: the state is that of such an adapter, else MR_ERR_USAGE; NULL: of a whole
    // model. Patterns of names are refused with it.
    const struct mr_lora_options *lora;
};

// Whether mr_trainer_open() will have a device for the training of this model with these options:
// its errors, before a state is made.
int mr_trainer_check(const char *model, const char *device, const struct mr_trainer_options *opt,
                     struct mr_error *err);

// Opens a state on a device that can train: "model:tinyt", or any other configuration as
// "model:sim". Completes a step that was under way when a program ended. A state can be open
// once at a time. opt may be NULL.
int mr_trainer_open(struct mr_trainer **trainer, const char *dir, const char *device,
                    const struct mr_trainer_options *opt, struct mr_error *err);
void mr_trainer_close(struct mr_trainer *trainer);

#define MR_TRAINER_NOTE 256

// Of the Model Zoo's and PyTorch's names. A state keeps to the one that it began with.
enum mr_optimizer { MR_OPTIMIZER_ADAMW, MR_OPTIMIZER_ADAM, MR_OPTIMIZER_SGD, MR_OPTIMIZERS };

struct mr_trainer_info {
    uint64_t step;       // steps done
    uint64_t parameters; // of the model
    size_t tensors;      // of mr_trainer_tensor()
    int vocab_size, n_positions;
    int tokens;                          // the most of a micro-batch
    uint64_t device_bytes;               // of device memory
    unsigned char note[MR_TRAINER_NOTE]; // of the last step's update; zeros if it has none
    enum mr_optimizer optimizer;         // of the steps done; MR_OPTIMIZERS: there are none
    uint64_t trainable;                  // parameters of the adapter; of a whole model all
    bool adapter;
    // Layers, and what is behind the last one as one more; those of them that come over the link in
    // each pass, because the device's memory does not hold all: 0, or 3 and more.
    int units, streamed;
    int n_labels; // of an encoder's classifier; else 0
};

void mr_trainer_get_info(const struct mr_trainer *trainer, struct mr_trainer_info *info);

// Whether the device itself does the updates of that optimizer; the bits are those of the host. If
// not, *why (unless NULL) says why in a few words; it is "" where no device of its kind does any.
bool mr_trainer_on_device(const struct mr_trainer *trainer, enum mr_optimizer optimizer,
                          const char **why);

// The name of a tensor, as a checkpoint has it: 0..tensors - 1. Good until the next call with the
// same trainer. *elements may be NULL. NULL: there is no such tensor.
const char *mr_trainer_tensor(struct mr_trainer *trainer, size_t index, size_t *elements);

#define MR_NO_TARGET (-1)

// Sequences of different lengths, one behind the other, without padding.
struct mr_micro_batch {
    int sequences;
    const int32_t *lengths; // [sequences], 1..n_positions
    const int32_t *tokens;  // [sum of the lengths]
    // For each token the one that should follow, or MR_NO_TARGET. NULL: the next one of its
    // sequence, and none for the last.
    const int32_t *targets;
    // For each token, whether its target is learnt: 0 or 1. NULL: all that have one.
    const uint8_t *mask;
    // Of an encoder's classifier, in the place of targets: for each token its type, and for each
    // sequence its label.
    const int32_t *types, *labels;
};

struct mr_batch_loss {
    double loss; // nats a target, on average
    int64_t targets;
    int64_t right; // of an encoder: texts whose likeliest label is theirs; all are `targets`
};

// Begins a step of so many micro-batches anew.
int mr_trainer_begin(struct mr_trainer *trainer, int micro_batches, struct mr_error *err);

// Forward and backward pass of a micro-batch; its gradients are added to the step's. A batch that
// is refused (MR_ERR_USAGE) changes nothing. A loss or gradient that is infinite or not a number is
// MR_ERR_FORMAT and ends the step; weights stay as they were. *loss may be NULL.
int mr_trainer_backward(struct mr_trainer *trainer, const struct mr_micro_batch *batch,
                        struct mr_batch_loss *loss, struct mr_error *err);

// A tensor by its name, in the checkpoint's shape: out[count], all of its elements. The gradient is
// that of the sum of all losses; it is whole when the step has all of its micro-batches, until
// mr_trainer_apply().
int mr_trainer_gradient(const struct mr_trainer *trainer, const char *name, float *out,
                        size_t count, struct mr_error *err);
int mr_trainer_weights(const struct mr_trainer *trainer, const char *name, float *out, size_t count,
                       struct mr_error *err);

// One step of an optimizer; the gradient is divided by the step's targets.
struct mr_trainer_update {
    double rate;                  // learning rate, 0..1
    double beta1, beta2, epsilon; // 0.9, 0.95 and 1e-8 are usual
    double decay;                 // of weights; decoupled with AdamW, else added to the gradient
    bool decay_all;               // of biases, LayerNorm and embeddings, too
    double clip;                  // the most that the norm of the gradient may be; 0: no limit
    // MR_TRAINER_NOTE bytes that the state keeps until the next step. NULL: zeros, so whoever keeps
    // a note finds out that somebody else has taken a step.
    const void *note;
    enum mr_optimizer optimizer; // AdamW; SGD has neither betas nor epsilon
    double momentum, dampening;  // of SGD, 0..1
    bool nesterov;               // of SGD: needs a momentum, and no dampening
};

struct mr_trainer_done {
    uint64_t step; // steps done
    double loss;   // nats a target, of all micro-batches, before the update
    int64_t targets;
    double norm; // of the gradient of the mean loss, before clipping
    // Times that the step was run again, because a sum was too large for its unit. A state's first
    // step has none and is run again once to find them.
    int repeated;
    // Of this engine, with what was repeated; 0 where the device counts no cycles. 0..1: the share
    // of the array's multipliers that had work.
    uint64_t cycles;
    double mac_utilisation;
    // Where layers stream: bytes to the device and from it, and cycles beside those above in which
    // it waits for a link of 12 GB/s and of 24 (docs/use/streaming.md#training).
    uint64_t link_up, link_down;
    double link_waited[2];
};

// Ends the step: all weights change, or none.
int mr_trainer_apply(struct mr_trainer *trainer, const struct mr_trainer_update *update,
                     struct mr_trainer_done *done, struct mr_error *err);

// The loss of a batch that is not learnt from. It changes nothing.
int mr_trainer_evaluate(struct mr_trainer *trainer, const struct mr_micro_batch *batch,
                        struct mr_batch_loss *loss, struct mr_error *err);

enum mr_save_format { MR_SAVE_F32, MR_SAVE_BF16, MR_SAVE_F16 };

// Writes the weights as the Hugging Face directory `dir`, which must not exist or be empty and
// appears only when it is complete. Of an adapter's state: those of the model with the adapter.
int mr_trainer_save(const struct mr_trainer *trainer, const char *dir, enum mr_save_format format,
                    struct mr_error *err);

// The adapter itself, as a directory that PEFT reads, in fp32.
int mr_trainer_save_adapter(const struct mr_trainer *trainer, const char *dir,
                            struct mr_error *err);

// ---- encoders ----------------------------------------------------------------------------------

// BERT and its like, which read texts and write none. docs/use/bert.md.
struct mr_encoder;

enum mr_pooling { MR_POOLING_MEAN, MR_POOLING_CLS };

struct mr_encoder_info {
    enum mr_model_kind kind;
    const char *architecture; // "BERT"
    uint64_t parameters;      // without heads
    int vocab_size, n_positions, n_embd, n_layer, n_head, n_inner;
    int max_tokens;          // of a text, with those around it
    enum mr_pooling pooling; // as the directory says, else the mean
    bool calibrated;         // a packed file's weights
    uint64_t file_bytes;     // of a packed file
    uint64_t stream_bytes;   // of its weights on a device, which each run reads once
    bool words;              // mr_encoder_fill() works
    int n_labels;            // of its classifier; 0: it has none
    bool by_token;           // which is for each token
};

struct mr_encoder_options {
    bool two_pass;         // on a device: as in struct mr_session_options; half the rows a run
    const char *calibrate; // on a device: as in struct mr_load_options; a file of texts, one a line
    bool verify;           // device NULL: compare the checksums of a packed file's tensors, too
};

// An encoder with its tokenizer: a Hugging Face directory or, except on "cpu:", a packed file. On a
// device other than "cpu:" the weights are MXINT8. device NULL: for its tokens and labels alone;
// nothing is computed. opt NULL: one pass, no calibration.
int mr_encoder_open(struct mr_encoder **encoder, const char *model, const char *device,
                    const struct mr_encoder_options *opt, struct mr_error *err);
void mr_encoder_close(struct mr_encoder *encoder);
void mr_encoder_get_info(const struct mr_encoder *encoder, struct mr_encoder_info *info);
// The name of label 0..n_labels - 1, valid until the encoder is closed.
const char *mr_encoder_label(const struct mr_encoder *encoder, int label);

// A text, or two of which one belongs to the other (a question and a passage). With `cut` a text
// that is too long loses its end (of two, the longer one); without, it is refused.
struct mr_encoder_text {
    const char *text, *pair; // pair NULL: none
    size_t size, pair_size;
    bool cut;
    int most;           // tokens, with those around it; 0: max_tokens
    const int32_t *ids; // NULL, or `count` tokens in place of text, without [CLS] and [SEP]
    size_t count;
};

// What the model reads: [CLS] text [SEP] and pair [SEP], with types 0 and 1 of the tokens.
struct mr_encoder_tokens {
    int32_t *ids, *types; // [count]
    int count;
    bool cut; // the text was too long
};

// On success the caller free()s tokens->ids and tokens->types.
int mr_encoder_encode(const struct mr_encoder *encoder, const struct mr_encoder_text *text,
                      struct mr_encoder_tokens *tokens, struct mr_error *err);

struct mr_embed_options {
    enum mr_pooling pooling;
    bool no_normalize; // else each row has length 1
};

// rows[count][n_embd], and in tokens[count], unless NULL, how many tokens each text has. Texts of
// different lengths go through the model together, without padding. opt NULL: as the info says.
int mr_encoder_embed(struct mr_encoder *encoder, const struct mr_encoder_text *texts, int count,
                     const struct mr_embed_options *opt, float *rows, int *tokens,
                     struct mr_error *err);

// A word in the place of a [MASK].
struct mr_filled {
    int mask; // which [MASK] of the text, from 0
    int32_t token;
    float probability;
    const char *text; // valid until the encoder is closed; size bytes
    size_t size;
};

// The `most` likeliest tokens for each [MASK] of the text, which has one at least: *list[*count] in
// order of masks and probabilities, for the caller to free().
int mr_encoder_fill(struct mr_encoder *encoder, const struct mr_encoder_text *text, int most,
                    struct mr_filled **list, size_t *count, struct mr_error *err);

// Probabilities of a text's labels: *out[*rows][n_labels], for the caller to free(). They sum to 1,
// unless the model has one label, or its labels are independent. A model that labels each token
// gives a row for each, with its id in *ids (else NULL), for the caller to free(); others one row.
int mr_encoder_classify(struct mr_encoder *encoder, const struct mr_encoder_text *text, float **out,
                        int32_t **ids, int *rows, struct mr_error *err);
// The text of a token, valid until the encoder is closed.
const char *mr_encoder_token(const struct mr_encoder *encoder, int32_t id, size_t *size);

// ---- what the device did ------------------------------------------------------------------------

struct mr_stats {
    uint64_t steps, tokens;
    bool counts;            // the device has counters
    unsigned clock_khz;     // an assumption until placed and routed
    int channels;           // memory channels of 64 bytes a cycle
    int rows, columns;      // of the array
    double pin_rate;        // of a simulated channel, of 64 bytes a cycle; 0: not known
    double sequential_rate; // the same for a plain sequential reader
    uint64_t counter[64];   // in the order of mr_stats_name(), totals over steps
    // Where the device's memory does not hold all weights: of `units`, layers and pieces of the
    // head about as large, those that come over the link in each pass; the bytes so far; and the
    // cycles in which the engine waits for a link of 12 GB/s and of 24, which are beside those
    // counted (docs/use/streaming.md). All 0 elsewhere.
    int units, streamed;
    uint64_t link_bytes;
    double link_waited[2];
};

void mr_session_get_stats(const struct mr_session *session, struct mr_stats *stats);
// "cycles", "weight_beats", ...; NULL beyond the last.
const char *mr_stats_name(int index);

// Ends packing, device runs and generation soon (async-signal-safe); they return
// MR_ERR_INTERRUPTED, and so does every later one until mr_interrupt_clear().
void mr_interrupt(void);
void mr_interrupt_clear(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
