// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define CORE "TOP.millrace_core."

// Of GTKWave's save files: how the traces behind it are shown.
enum { HEX = 0x22, BIT = 0x28, OPEN = 0x800200, CLOSED = 0xc00200, END = 0x1000200 };
enum { END_CLOSED = 0x1401200 };

// Names below the core, in the order of a command's way; a group ends with NULL. Their widths are
// the same in every configuration; one that ends in # has a bit for each channel.
static const char *const run[] = {"clk_i",
                                  "u_control.u_seq.busy_o",
                                  "u_control.u_seq.state_q[2:0]",
                                  "c_w_beat#",
                                  "c_kv_beat#",
                                  "c_hr_beat",
                                  "c_wr_beat",
                                  "c_blocks[15:0]",
                                  NULL};
static const char *const sequencer[] = {"u_control.u_seq.cmd_valid",
                                        "u_control.u_seq.cmd_ready",
                                        "u_control.u_seq.index_q[15:0]",
                                        "u_control.u_seq.issue_valid_o[4:1]",
                                        "u_control.u_seq.issue_ready_i[4:1]",
                                        "u_control.u_seq.unit_busy_o[4:0]",
                                        "u_control.u_seq.done_valid_o[4:0]",
                                        "u_control.u_seq.sem_nonzero[15:0]",
                                        NULL};
static const char *const array[] = {"u_matmul.cmd_valid_i",
                                    "u_matmul.cmd_ready_o",
                                    "c_arr_busy",
                                    "c_arr_weights",
                                    "c_arr_drain",
                                    "c_arr_idle",
                                    "u_matmul.ring_count_i[15:0]",
                                    "u_matmul.ring_free_o",
                                    "u_matmul.dr_valid_o",
                                    "u_matmul.dr_ready_i",
                                    "u_matmul.dr_token_o[15:0]",
                                    "u_matmul.dr_group_o[15:0]",
                                    NULL};
static const char *const epilogue[] = {"u_results.epi_valid",        "u_results.epi_ready",
                                       "u_results.act_valid_o",      "u_results.act_ready_i",
                                       "u_results.act_slot_o[15:0]", "u_results.act_word_o[15:0]",
                                       "u_results.job_valid_o",      "u_results.job_ready_i",
                                       "u_results.done_o",           NULL};
static const char *const vector[] = {"u_vector.cmd_valid_i",
                                     "u_vector.cmd_ready_o",
                                     "u_vector.busy_o",
                                     "u_vector.done_o",
                                     "u_vector.ln_valid_o",
                                     "u_vector.ln_ready_i",
                                     NULL};
static const char *const attention[] = {"u_kv.at_valid_i",
                                        "u_kv.at_ready_o",
                                        "u_kv.at_done_o",
                                        "c_at_busy",
                                        "c_at_kv",
                                        "c_at_idle",
                                        "u_kv.u_attn.a_state_q[2:0]",
                                        "u_kv.u_attn.b_state_q[2:0]",
                                        "u_kv.kv_job_valid_o#",
                                        "u_kv.kv_job_ready_i#",
                                        "u_kv.kv_valid_i#",
                                        NULL};
static const char *const writer[] = {"u_kv.st_valid_i",  "u_kv.st_ready_o",  "u_kv.st_done_o",
                                     "u_kv.job_valid_o", "u_kv.job_ready_i", NULL};
static const char *const host[] = {
    "u_host.m_host_arvalid_o", "u_host.m_host_arready_i",      "u_host.m_host_araddr_o[63:0]",
    "u_host.m_host_rvalid_i",  "u_host.m_host_rready_o",       "u_host.m_host_awvalid_o",
    "u_host.m_host_awready_i", "u_host.m_host_awaddr_o[63:0]", "u_host.m_host_wvalid_o",
    "u_host.m_host_wready_i",  "u_host.m_host_bvalid_i",       NULL};

// Of one channel.
static const char *const channel[] = {"u_reader.m_arvalid_o",        "u_reader.m_arready_i",
                                      "u_reader.m_araddr_o[63:0]",   "u_reader.m_arlen_o[7:0]",
                                      "u_reader.m_rvalid_i",         "u_reader.w_valid_o",
                                      "u_reader.kv_valid_o",         "u_reader.cnt_issue_o",
                                      "u_reader.cnt_wait_o",         "u_reader.cnt_nocredit_o",
                                      "u_reader.cnt_idle_o",         "u_stream.cmd_valid_i",
                                      "u_stream.cmd_ready_o",        "u_stream.cmd_kblocks_i[15:0]",
                                      "u_stream.cmd_groups_i[31:0]", "u_stream.ring_count_o[15:0]",
                                      "u_stream.ring_free_i",        "u_stream.tile_valid_o",
                                      "u_stream.tile_pop_i",         NULL};

struct view {
    FILE *out;
    unsigned channels;
};

static void signal_of(const struct view *v, const char *scope, const char *name)
{
    size_t n = strcspn(name, "#");
    bool wide = name[n] == '#' || strchr(name, '[');
    fprintf(v->out, "@%x\n" CORE "%s%.*s", (unsigned)(wide ? HEX : BIT), scope, (int)n, name);
    if (name[n] == '#')
        fprintf(v->out, "[%u:0]", v->channels - 1);
    fprintf(v->out, "\n");
}

static void group(const struct view *v, const char *title, const char *scope,
                  const char *const *names, bool open)
{
    fprintf(v->out, "@%x\n-%s\n", (unsigned)(open ? OPEN : CLOSED), title);
    for (; *names; names++)
        signal_of(v, scope, *names);
    fprintf(v->out, "@%x\n-%s\n", (unsigned)(open ? END : END_CLOSED), title);
}

int mr_trace_gtkw(FILE *out, const char *waves, unsigned channels, uint64_t from,
                  struct mr_error *err)
{
    const struct view v = {out, channels};
    const char *slash = strrchr(waves, '/');
    fprintf(out,
            "[*] Millrace: the main blocks; a cycle is 10 units of time\n"
            "[dumpfile] \"%s\"\n[timestart] %llu\n[sst_expanded] 1\n",
            slash ? slash + 1 : waves, 10 * (unsigned long long)from);
    group(&v, "run", "", run, true);
    group(&v, "sequencer", "", sequencer, true);
    for (unsigned c = 0; c < channels; c++) {
        char title[32], scope[64];
        (void)snprintf(title, sizeof title, "channel %u", c);
        (void)snprintf(scope, sizeof scope, "u_channels.gen_channel[%u].", c);
        group(&v, title, scope, channel, c == 0);
    }
    group(&v, "array", "", array, true);
    group(&v, "epilogue", "", epilogue, true);
    group(&v, "vector", "", vector, true);
    group(&v, "attention", "", attention, true);
    group(&v, "KV writer", "", writer, true);
    group(&v, "host port", "", host, false);
    return ferror(out) ? mr_fail(err, MR_ERR_IO, "cannot be written: %s", strerror(errno)) : 0;
}
