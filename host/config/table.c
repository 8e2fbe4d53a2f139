// SPDX-License-Identifier: Apache-2.0
#include "config/key.h"

#include <stddef.h>

#include "config/special.h"

#define AT(MEMBER)    .at = offsetof(struct mr_training, MEMBER)
#define INPUT(MEMBER) .at = offsetof(struct mr_training_input, MEMBER)
#define WHOLE(NAME, LOW, HIGH, ...)                                                                \
    {.name = NAME, .kind = MR_KEY_WHOLE, .low = LOW, .high = HIGH, __VA_ARGS__}
#define REAL(NAME, LOW, HIGH, ...)                                                                 \
    {.name = NAME, .kind = MR_KEY_REAL, .low = LOW, .high = HIGH, __VA_ARGS__}
#define SPECIAL(NAME, TAKE, ...) {.name = NAME, .kind = MR_KEY_SPECIAL, .take = TAKE, __VA_ARGS__}
#define IGNORED(NAMES)           {.name = "", .aliases = NAMES, .kind = MR_KEY_IGNORED}
#define FIXED(NAME, VALUE, WHY)  {.name = NAME, .kind = MR_KEY_FIXED, .words = VALUE, .why = WHY}
#define REFUSED(NAME, WHY)       {.name = NAME, .kind = MR_KEY_REFUSED, .why = WHY}
#define STEPS(NAME, LOW, ...)    WHOLE(NAME, LOW, 1 << 30, __VA_ARGS__)
#define DROPOUT(NAME)            SPECIAL(NAME, mr_take_dropout, .low = 0, .high = 1)
#define SIZE(NAME, INDEX, HIGH, ...)                                                               \
    SPECIAL(NAME, mr_take_size, .low = 1, .high = HIGH, AT(model.size[INDEX]), __VA_ARGS__)

static const char no_mup[] = "muP's factors are not there yet";
static const char no_bert[] =
    "of BERT, classifiers of whole texts can be trained, without this key";
static const char no_sparsity[] = "sparse training is not there";
static const char no_moe[] = "mixtures of experts are not there";
static const char other_group[] = "rates and decay are the same for all weights";

static const struct mr_key input[] = {
    SPECIAL("data_dir", mr_take_paths, INPUT(data), .aliases = "data"),
    SPECIAL("data_processor", mr_take_processor, INPUT(labelled)),
    WHOLE("batch_size", 1, 1 << 20, INPUT(batch)),
    SPECIAL("micro_batch_size", mr_take_micro, .low = 1, .high = 1024, INPUT(micro)),
    WHOLE("max_sequence_length", 1, 1 << 20, INPUT(sequence), .aliases = "msl"),
    {.name = "shuffle", .kind = MR_KEY_FLAG, INPUT(shuffle)},
    {.name = "shuffle_seed", .kind = MR_KEY_LONG, .low = 0, .high = 9e18, INPUT(seed)},
    FIXED("drop_last", "true", "no step has fewer windows than the others"),
    FIXED("repeat", "true", "the data is gone through again and again"),
    FIXED("use_vsl", "false", "windows of data_dir are packed already"),
    FIXED("num_samples", "0", "all of the data is used"),
    FIXED("bos_token_id", "", "the data says its tokens"),
    REFUSED("mixture", "one data_dir can be learnt"),
    REFUSED("masked_lm_prob", no_bert),
    REFUSED("max_predictions_per_seq", no_bert),
    REFUSED("whole_word_masking", no_bert),
    REFUSED("label_vocab_file", no_bert),
    REFUSED("max_cls_tokens", no_bert),
    // Of a classifier; judge_kind() refuses both elsewhere.
    {.name = "vocab_file", .kind = MR_KEY_IGNORED},
    {.name = "do_lower", .kind = MR_KEY_IGNORED},
    IGNORED("vocab_size|num_workers|prefetch_factor|persistent_workers|"
            "use_worker_cache|use_multiple_workers|mixed_precision|is_training"),
    {0},
};

static const struct mr_key model[] = {
    SPECIAL("name", mr_take_name, .at = 0, .aliases = "model_name"),
    SPECIAL("position_embedding_type", mr_take_positions, .at = 0),
    SIZE("vocab_size", MR_SIZE_VOCABULARY, MR_MAX_VOCAB),
    SIZE("max_position_embeddings", MR_SIZE_POSITIONS, MR_MAX_POSITIONS),
    SIZE("hidden_size", MR_SIZE_WIDTH, MR_MAX_EMBD),
    SIZE("num_hidden_layers", MR_SIZE_LAYERS, MR_MAX_LAYER),
    SIZE("num_heads", MR_SIZE_HEADS, MR_MAX_HEAD),
    SIZE("filter_size", MR_SIZE_INNER, MR_MAX_INNER),
    SIZE("rotary_dim", MR_SIZE_ROTARY, MR_MAX_EMBD),
    SPECIAL("layer_norm_epsilon", mr_take_epsilon, .high = 1, .above = true, AT(model.epsilon)),
    SPECIAL("share_embedding_weights", mr_take_flag, .at = MR_FLAG_TIED),
    SPECIAL("use_bias_in_output", mr_take_flag, .at = MR_FLAG_HEAD_BIAS),
    SPECIAL("use_projection_bias_in_attention", mr_take_flag, .at = MR_FLAG_QKV_BIAS),
    SPECIAL("use_ffn_bias_in_attention", mr_take_flag, .at = MR_FLAG_OUT_BIAS),
    SPECIAL("use_ffn_bias", mr_take_flag, .at = MR_FLAG_INNER_BIAS),
    FIXED("use_untied_layer_norm", "false", "GPT-NeoX has that; GPT-J and GPT-2 can be trained"),
    FIXED("attention_type", "scaled_dot_product", "scaled_dot_product can be trained"),
    FIXED("attention_module", "aiayn_attention", "one K and V for each head can be trained"),
    SPECIAL("nonlinearity", mr_take_function, AT(model.function)),
    FIXED("norm_type", "layernorm", "layernorm can be trained"),
    FIXED("norm_first", "true", "norms stand in front"),
    FIXED("use_position_embedding", "true", "a model without positions is not there"),
    DROPOUT("dropout_rate"),
    DROPOUT("embedding_dropout_rate"),
    DROPOUT("attention_dropout_rate"),
    DROPOUT("residual_dropout_rate"),
    SPECIAL("loss_scaling", mr_take_loss, AT(loss_scaling)),
    REAL("loss_weight", 0, 1e6, .above = true, AT(loss_weight)),
    REAL("initializer_range", 0, 1, .above = true, AT(model.range)),
    SPECIAL("embedding_initializer", mr_take_initialiser, AT(model.start[MR_START_TABLE]),
            .aliases = "position_embedding_initializer"),
    SPECIAL("initializer", mr_take_initialiser, AT(model.start[MR_START_MATRIX])),
    SPECIAL("output_layer_initializer", mr_take_initialiser, AT(model.start[MR_START_OUTPUT])),
    FIXED("embeddings_scale", "1", no_mup),
    FIXED("output_logits_scale", "1", no_mup),
    FIXED("output_logits_alpha", "", no_mup),
    FIXED("attention_logits_alpha", "1", no_mup),
    FIXED("scale_qk_dot_by_d", "false", no_mup),
    REFUSED("mup_base_hidden_size", no_mup),
    REFUSED("mup_base_filter_size", no_mup),
    SPECIAL("lora_params", mr_take_lora, AT(lora)),
    REFUSED("moe_params", no_moe),
    REFUSED("num_experts", no_moe),
    REFUSED("fixed_sparse_attention", no_sparsity),
    REFUSED("disable_nsp", no_bert),
    SPECIAL("encoder_nonlinearity", mr_take_function, AT(model.function)),
    REFUSED("encoder_output_dropout_rate", no_bert),
    FIXED("pooler_nonlinearity", "tanh", "tanh can be trained"),
    REFUSED("mlm_loss_weight", no_bert),
    REFUSED("mask_padding_in_positional_embed", no_bert),
    REFUSED("include_padding_in_loss", no_bert),
    SPECIAL("num_labels", mr_take_labels, .low = 2, .high = MR_MAX_LABELS, AT(model.labels),
            .aliases = "num_classes"),
    FIXED("problem_type", "single_label_classification", "each text has one label"),
    DROPOUT("task_dropout"),
    REFUSED("use_cls_bias", no_bert),
    REFUSED("label_vocab_file", no_bert),
    REFUSED("vocab_file", no_bert),
    IGNORED("attention_softmax_fp32|mixed_precision|fp16_type|use_bfloat16|precision_opt_level|"
            "boundary_casting|tf_summary|compute_eval_metrics"),
    {0},
};

// Of AdamW and Adam, in both generations.
static const struct mr_key moments[] = {
    SPECIAL("betas", mr_take_betas, .high = 0.999999),
    REAL("beta1", 0, 0.999999, AT(beta1)),
    REAL("beta2", 0, 0.999999, AT(beta2)),
    REAL("eps", 1e-12, 1, AT(epsilon), .aliases = "epsilon"),
    FIXED("correct_bias", "true", "moments are corrected"),
    FIXED("use_bias_correction", "true", "moments are corrected"),
    FIXED("amsgrad", "false", "AMSGrad is not there"),
    {0},
};

static const struct mr_key sgd[] = {
    REAL("momentum", 0, 0.999999, AT(momentum)),
    REAL("dampening", 0, 0.999999, AT(dampening)),
    {.name = "nesterov", .kind = MR_KEY_FLAG, AT(nesterov)},
    {0},
};

// Of all three.
static const struct mr_key any_optimizer[] = {
    REAL("weight_decay", 0, 1, AT(decay), .aliases = "weight_decay_rate|l2_regularization_rate"),
    SPECIAL("freeze", mr_take_patterns, AT(frozen)),
    SPECIAL("no_decay", mr_take_patterns, AT(no_decay)),
    FIXED("maximize", "false", "a loss is made small"),
    REFUSED("params", other_group),
    {0},
};

static const struct mr_key optimizer[] = {
    SPECIAL("optimizer_type", mr_take_type, .at = 0, .aliases = "optimizer"),
    SPECIAL("learning_rate", mr_take_rates, AT(rates), .aliases = "base_lr"),
    FIXED("disable_lr_steps_reset", "false", "each schedule counts its own steps"),
    REFUSED("adjust_learning_rate", other_group),
    IGNORED("log_summaries|ws_summary"),
    {0},
};

// Of the optimizer in the first generation, of `precision` in the second.
static const struct mr_key precision[] = {
    REAL("max_gradient_norm", 0, 1e9, AT(clip), .above = true),
    REFUSED("max_gradient_value", "gradients are clipped by their norm: max_gradient_norm"),
    IGNORED("loss_scaling_factor|initial_loss_scale|steps_per_increase|min_loss_scale|"
            "max_loss_scale|log_loss_scale|enabled|fp16_type|precision_opt_level"),
    {0},
};

static const struct mr_key loop[] = {
    STEPS("max_steps", 1, AT(steps)),
    STEPS("num_steps", 1, AT(more_steps)),
    STEPS("num_epochs", 1, AT(epochs)),
    STEPS("steps_per_epoch", 1, AT(epoch_steps)),
    STEPS("eval_frequency", 1, AT(eval_frequency)),
    STEPS("eval_steps", 1, AT(eval_steps)),
    FIXED("grad_accum_steps", "1", "micro_batch_size says how a step is divided"),
    {0},
};

static const struct mr_key checkpoint[] = {
    {.name = "autoload_last_checkpoint", .kind = MR_KEY_SPECIAL, .take = mr_take_autoload},
    STEPS("max_checkpoints", 1, AT(max_checkpoints), .aliases = "keep_checkpoint_max"),
    IGNORED("save_initial_checkpoint|disable_strict_checkpoint_loading"),
    FIXED("checkpoint_root", "", "checkpoints are in the directory of -o"),
    FIXED("checkpoint_name", "checkpoint_{step}.mdl", "checkpoints are checkpoint-N of -o DIR"),
    {0},
};

static const struct mr_key checkpoint_steps[] = {
    STEPS("checkpoint_steps", 0, AT(checkpoint_steps), .aliases = "save_checkpoints_steps"),
    {.name = "checkpoint_path", .kind = MR_KEY_TEXT, AT(checkpoint)},
    FIXED("load_checkpoint_states", "model|all", "a checkpoint has weights"),
    {0},
};

static const struct mr_key steps[] = {
    STEPS("steps", 0, AT(checkpoint_steps), .aliases = "checkpoint_steps"),
    {0},
};

static const struct mr_key logging[] = {
    STEPS("log_steps", 1, AT(log_steps), .aliases = "save_summary_steps"),
    IGNORED("log_level|wsc_log_level|enable_act_frequency"),
    {0},
};

static const struct mr_key run[] = {
    {.name = "seed", .kind = MR_KEY_LONG, .low = 0, .high = 9e18, AT(seed)},
    {.name = "model_dir", .kind = MR_KEY_TEXT, AT(output)},
    {0},
};

static const struct mr_key runconfig[] = {
    SPECIAL("mode", mr_take_mode, AT(mode)),
    FIXED("num_csx", "1", "--engines N says how many"),
    FIXED("compile_only", "false", "nothing is compiled"),
    FIXED("validate_only", "false", "nothing is compiled"),
    FIXED("enable_distributed", "false", "one engine can be used"),
    FIXED("use_cs_grad_accum", "true|false", ""),
    IGNORED("precision_opt_level|num_act_servers|num_wgt_servers|num_workers_per_csx|"
            "target_device|use_appliance_data|use_cstorch_optimizer_step|save_losses|"
            "check_loss_values|show_debug_metrics|log_input_summaries|log_initialization|"
            "drop_data|summary_dir|logging|mount_dirs|python_paths|job_labels|job_priority|"
            "compile_dir|experimental"),
    {0},
};

static const struct mr_key top[] = {
    REFUSED("sparsity", no_sparsity),
    REFUSED("predict_input", no_bert),
    IGNORED("csconfig"),
    {0},
};

static const struct mr_key init[] = {
    SPECIAL("optimizer", mr_take_optimizer, .at = 0),
    SPECIAL("schedulers", mr_take_rates, AT(rates), .low = 1, .aliases = "scheduler"),
    SPECIAL("callbacks", mr_take_list, .at = 0),
    SPECIAL("loggers", mr_take_list, .at = 0),
    REFUSED("sparsity", no_sparsity),
    IGNORED("device|autorestart"),
    {0},
};

static const struct mr_key backend[] = {
    IGNORED("backend_type|cluster_config|compile_dir"),
    FIXED("validate_only", "false", "nothing is compiled"),
    FIXED("compile_only", "false", "nothing is compiled"),
    {0},
};

static const struct mr_key callbacks[] = {
    IGNORED("ComputeNorm|CheckLoss|LogInputSummaries"),
    {0},
};

static const struct mr_key loggers[] = {
    IGNORED("ProgressLogger"),
    SPECIAL("TensorBoardLogger", mr_take_events, AT(events)),
    REFUSED("WandbLogger", "nothing is sent anywhere; --json prints the same numbers"),
    {0},
};

static const struct mr_key train_flags[] = {
    SPECIAL("micro_batch_size", mr_take_micro, .low = 1, .high = 1024, AT(train.micro)),
    {0},
};
static const struct mr_key held_flags[] = {
    IGNORED("micro_batch_size"),
    {0},
};

static const struct mr_key fit[] = {
    {.name = "ckpt_path", .kind = MR_KEY_TEXT, AT(checkpoint)},
    {0},
};
static const struct mr_key validate_all[] = {
    REFUSED("ckpt_paths", "eval_all goes through the checkpoints of -o DIR"),
    {0},
};

#define OF(MEMBER) offsetof(struct mr_training, MEMBER)
#define INIT       "trainer.init."
#define CALLBACKS  "trainer.init.callbacks."
const struct mr_key_place mr_key_places[] = {
    {"train_input.", input, OF(train)},
    {"eval_input.", input, OF(held[MR_HELD_FIT])},
    {"model.", model, 0},
    {"optimizer.", optimizer, 0},
    {"optimizer.", moments, 0},
    {"optimizer.", sgd, 0},
    {"optimizer.", any_optimizer, 0},
    {"optimizer.", precision, 0},
    {"runconfig.", loop, 0},
    {"runconfig.", run, 0},
    {"runconfig.", logging, 0},
    {"runconfig.", checkpoint_steps, 0},
    {"runconfig.", checkpoint, 0},
    {"runconfig.", runconfig, 0},
    {"", top, 0},
    {INIT, init, 0},
    {INIT, run, 0},
    {INIT "model.", model, 0},
    {INIT "optimizer.AdamW.", moments, 0},
    {INIT "optimizer.AdamW.", any_optimizer, 0},
    {INIT "optimizer.Adam.", moments, 0},
    {INIT "optimizer.Adam.", any_optimizer, 0},
    {INIT "optimizer.SGD.", sgd, 0},
    {INIT "optimizer.SGD.", any_optimizer, 0},
    {INIT "precision.", precision, 0},
    {INIT "loop.", loop, 0},
    {INIT "checkpoint.", steps, 0},
    {INIT "checkpoint.", checkpoint, 0},
    {INIT "logging.", logging, 0},
    {INIT "backend.", backend, 0},
    {INIT "loggers.", loggers, 0},
    {CALLBACKS, callbacks, 0},
    {CALLBACKS "ScopedTrainFlags.csx.performance.", train_flags, 0},
    {CALLBACKS "ScopedValidateFlags.csx.performance.", held_flags, 0},
    {"trainer.fit.train_dataloader.", input, OF(train)},
    {"trainer.fit.val_dataloader.", input, OF(held[MR_HELD_FIT])},
    {"trainer.fit.", fit, 0},
    {"trainer.validate.val_dataloader.", input, OF(held[MR_HELD_VALIDATE])},
    {"trainer.validate.", fit, 0},
    {"trainer.validate_all.val_dataloaders.", input, OF(held[MR_HELD_ALL])},
    {"trainer.validate_all.", validate_all, 0},
    {0},
};
