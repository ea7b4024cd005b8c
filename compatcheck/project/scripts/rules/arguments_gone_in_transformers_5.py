"""TrainingArguments are given what 4.57.6 still takes and 5.0.0 does not.

https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/training_args.py
"""

from __future__ import annotations

from compatcheck.project.scripts._script import ARGUMENTS, TRL_CONFIGS, Script

READS = "calls"

CLASSES = (*ARGUMENTS, *TRL_CONFIGS)
KEYWORDS = frozenset(
    (
        *("adafactor", "fp16_backend", "fp16_opt_level", "fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap"),
        *("half_precision_backend", "include_inputs_for_metrics", "include_tokens_per_second", "jit_mode_eval"),
        *("mp_parameters", "no_cuda", "overwrite_output_dir", "past_index", "per_gpu_eval_batch_size"),
        *("per_gpu_train_batch_size", "push_to_hub_model_id", "push_to_hub_organization", "push_to_hub_token"),
        *("ray_scope", "save_safetensors", "torchdynamo", "tpu_metrics_debug", "tpu_num_cores"),
        *("use_legacy_prediction_loop", "use_mps_device"),
    )
)


def find(script: Script) -> int | None:
    return script.keyword_line(CLASSES, KEYWORDS)
