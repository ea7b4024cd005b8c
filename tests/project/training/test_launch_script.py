from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compatcheck.environment import Environment, Unknown
from compatcheck.errors import InputError
from compatcheck.project.reading import read_paths
from compatcheck.project.training._shell import OPEN, commands
from compatcheck.project.training.document import Document
from compatcheck.project.training.formats import launch_script

TORCHRUN = """\
#!/bin/bash
#SBATCH --gpus 4
export NCCL_DEBUG=INFO
export ACCELERATE_API_KEY=abc
GPUS=${GPUS:-4}
NODES=2
DISTRIBUTED="--nproc_per_node $GPUS --nnodes $NODES \\
    --master_port 29501"   # not --nnodes 9
LAUNCH_ARGS=(
    --bf16 True
    --optim adamw_torch  # comment
)
LAUNCH_ARGS+=(--gradient_checkpointing)
torchrun $DISTRIBUTED train.py \\
    --model_name_or_path "acme/seven b" \\
    --per_device_train_batch_size=2 \\
    --gradient_accumulation_steps "$((GPUS * 2))" \\
    --learning_rate $LR \\
    --output_dir out_$(date +%s) \\
    --gradient_checkpointing_kwargs '{"use_reentrant": false}' \\
    "${LAUNCH_ARGS[@]}" 2>&1 | tee train.log
"""


def read(tmp_path: Path, text: str, name: str = "run.sh", newline: str = "\n") -> Environment:
    path = tmp_path / name
    path.write_bytes(text.replace("\n", newline).encode())
    return read_paths([str(path)]).environment


def fact(environment: Environment, path: str) -> Any:
    return environment.get(f"training.{path}")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_flags_with_the_variables_of_the_script_filled_in(tmp_path: Path, newline: str) -> None:
    found = read(tmp_path, TORCHRUN, newline=newline)
    for path, value, line in (
        ("framework", "transformers", None),
        ("world_size", 8, 14),
        ("dtype", "bfloat16", 21),
        ("per_device_train_batch_size", 2, 16),
        ("gradient_accumulation_steps", 8, 17),
        ("gradient_checkpointing", True, 21),
        ("gradient_checkpointing_kwargs.use_reentrant", False, 20),
        ("deepspeed", None, None),
    ):
        assert fact(found, path) == value, path
        at = found.locations.get(f"training.{path}")
        assert (at.line if at else None) == line, path
    unknown = fact(found, "learning_rate")
    assert isinstance(unknown, Unknown) and "a variable" in (unknown.reason or "")
    assert found.facts["environ"] == {"NCCL_DEBUG": "INFO"}
    assert found.facts["model"] == {"name": "acme/seven b"}


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("torchrun --nproc_per_node=8 t.py {}", 8),
        ("torchrun --nproc-per-node 8 --nnodes 1:2 t.py {}", None),
        ("torchrun t.py {}", 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node gpu t.py {}", 3),
        ("torchrun --nproc_per_node gpu t.py {}", None),
        ("torchrun --nproc_per_node $N t.py {}", None),
        ("python -m torch.distributed.run --nproc_per_node 4 t.py {}", 4),
        ("python3 -m torch.distributed.launch --nproc_per_node=4 --use_env t.py {}", 4),
        ("deepspeed --num_gpus 2 --num_nodes 3 t.py {}", 6),
        ("deepspeed --include localhost:1,3 t.py {}", 2),
        ("deepspeed --hostfile h --num_gpus 8 t.py {}", None),
        ("deepspeed t.py {}", None),
        ("python t.py {}", 1),
        ("nohup python3.11 -u t.py {} > log 2>&1 &", 1),
        ("srun --ntasks 4 torchrun --nproc_per_node 2 t.py {}", None),
        ("srun torchrun --nproc_per_node 2 --nnodes 3 t.py {}", 6),
        ("srun -n 8 python t.py {}", None),
        ("accelerate launch --num_processes 8 --multi_gpu t.py {}", 8),
        ("accelerate launch t.py {}", None),
        ("NPROC_PER_NODE=4 NNODES=2 swift sft {}", 8),
        ("swift sft {}", 1),
        ("ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 llamafactory-cli train {} --stage sft --template qwen", 4),
        ("HIP_VISIBLE_DEVICES=4,5 torchrun --nproc_per_node auto t.py {}", 2),
        ("CUDA_VISIBLE_DEVICES=0 ASCEND_RT_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node gpu t.py {}", None),
        ("ASCEND_RT_VISIBLE_DEVICES=$IDS torchrun --nproc_per_node gpu t.py {}", None),
    ],
)
def test_the_number_of_processes(tmp_path: Path, line: str, size: int | None) -> None:
    flags = "--model Qwen/x --bf16 true --output_dir o --per_device_train_batch_size 1 --learning_rate 1e-4"
    found = fact(read(tmp_path, line.format(flags) + "\n"), "world_size")
    assert isinstance(found, Unknown) if size is None else found == size


BASE = "--output_dir o --per_device_train_batch_size 1"


@pytest.mark.parametrize(
    ("flag", "path", "value"),
    [
        ("--fp16", "dtype", "float16"),
        ("--bf16 False --fp16 False", "dtype", "float32"),
        ("--bf16 $X", "dtype", Unknown),
        ("--no_gradient_checkpointing", "gradient_checkpointing", False),
        ("--max_grad_norm=0.3", "max_grad_norm", 0.3),
        ("--gradient_accumulation_steps $(cat ga)", "gradient_accumulation_steps", Unknown),
        ("--attn_implementation 'sdpa'", "attention", "sdpa"),
        ("--optim adamw_8bit --optim adamw_torch", "optimizer", "adamw_torch"),
        ("--load_in_4bit True --torch_dtype float16", "quantization.bits", 4),
        ("--learning-rate 2e-5", "learning_rate", 2e-5),
    ],
)
def test_forms_of_a_flag(tmp_path: Path, flag: str, path: str, value: Any) -> None:
    found = fact(read(tmp_path, f"torchrun t.py {BASE} {flag}"), path)
    assert isinstance(found, Unknown) if value is Unknown else found == value


def test_a_branch_leaves_a_variable_open_and_its_own_command_does_not(tmp_path: Path) -> None:
    script = (
        'BATCH=1\nif [ "$1" = big ]; then\n  BATCH=8\nfi\n'
        "torchrun t.py --output_dir o --per_device_train_batch_size $BATCH --bf16 true\n"
    )
    assert isinstance(fact(read(tmp_path, script), "per_device_train_batch_size"), Unknown)
    inside = (
        "if true; then\n  BATCH=8\n"
        "  torchrun t.py --output_dir o --per_device_train_batch_size $BATCH --bf16 true\nfi\n"
    )
    assert fact(read(tmp_path, inside), "per_device_train_batch_size") == 8


def test_several_trainings_decide_what_they_agree_on(tmp_path: Path) -> None:
    script = (
        "torchrun --nproc_per_node 4 t.py --output_dir a --bf16 true --learning_rate 1e-4 "
        "--per_device_train_batch_size 2\npython merge.py --output_dir x\n"
        "torchrun --nproc_per_node 4 t.py --output_dir b --bf16 true --learning_rate 1e-5 "
        "--per_device_train_batch_size 2\n"
    )
    found = read(tmp_path, script)
    assert fact(found, "world_size") == 4
    assert fact(found, "dtype") == "bfloat16"
    unknown = fact(found, "learning_rate")
    assert isinstance(unknown, Unknown)
    assert "lines 1, 3" in (unknown.reason or "")


def test_accelerate_flags_stand_over_its_file(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nmixed_precision: 'no'\nnum_processes: 8\n"
        "deepspeed_config:\n  zero_stage: 3\n"
    )
    script = (
        "accelerate launch --config_file acc.yaml --num_processes 2 --zero_stage 2 --mixed_precision bf16 \\\n"
        "  train.py --output_dir o --per_device_train_batch_size 4 --gradient_accumulation_steps 2\n"
    )
    found = read(tmp_path, script)
    for path, value in (
        ("world_size", 2),
        ("deepspeed.zero_stage", 2),
        ("dtype", "bfloat16"),
        ("per_device_train_batch_size", 4),
    ):
        assert fact(found, path) == value, path
    assert found.locations["training.deepspeed.zero_stage"].file.endswith("run.sh")


def test_a_script_that_names_its_configuration_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text(
        "model_name_or_path: acme/m\nbf16: true\nper_device_train_batch_size: 4\noutput_dir: o\nlearning_rate: 1e-4\n"
        "packing: true\nmax_length: 512\n"
    )
    found = read(tmp_path, "trl sft --config sft.yaml --per_device_train_batch_size 1 --deepspeed zero.json\n")
    assert fact(found, "framework") == "trl"
    assert fact(found, "objective") == "sft"
    assert fact(found, "packing") is True
    assert fact(found, "per_device_train_batch_size") == 1
    assert found.locations["training.per_device_train_batch_size"].file.endswith("run.sh")
    assert found.locations["training.packing"].file.endswith("sft.yaml")
    unknown = fact(found, "deepspeed")
    assert isinstance(unknown, Unknown) and "zero.json" in (unknown.reason or "")


@pytest.mark.parametrize(
    ("launch", "extra", "fsdp"),
    [
        ("llamafactory-cli train r.yaml", "", None),
        ("FORCE_TORCHRUN=1 llamafactory-cli train r.yaml", "deepspeed: z.json\n", None),
        ("torchrun --nproc_per_node 2 src/train.py r.yaml", "", None),
        ("accelerate launch src/train.py r.yaml", "", Unknown()),
        ("llamafactory-cli train r.yaml", "fsdp: full_shard auto_wrap\n", {"offload": False}),
    ],
)
def test_fsdp_comes_from_the_arguments_or_from_accelerate(
    tmp_path: Path, launch: str, extra: str, fsdp: object
) -> None:
    recipe = "model_name_or_path: acme/m\nstage: sft\ntemplate: qwen\ndo_train: true\nbf16: true\n"
    (tmp_path / "r.yaml").write_text(recipe + extra)
    found = fact(read(tmp_path, launch + "\n"), "fsdp")
    assert isinstance(found, Unknown) if isinstance(fsdp, Unknown) else found is fsdp or found["offload"] is False


def test_a_configuration_that_is_not_here_leaves_no_defaults(tmp_path: Path) -> None:
    found = read(tmp_path, "trl sft --config gone.yaml --bf16 true\n")
    assert fact(found, "dtype") == "bfloat16"
    unknown = fact(found, "gradient_accumulation_steps")
    assert isinstance(unknown, Unknown)


def test_xtuner_with_a_preset_that_only_the_gpu_decides(tmp_path: Path) -> None:
    found = read(tmp_path, "NPROC_PER_NODE=8 xtuner train llama3_8b_full_alpaca_e3 --deepspeed deepspeed_zero2\n")
    for path, value in (
        ("framework", "xtuner"),
        ("world_size", 8),
        ("deepspeed.zero_stage", 2),
        ("deepspeed.overlap_comm", True),
        ("deepspeed.contiguous_gradients", True),
        ("dtype_rule", "bfloat16-if-supported"),
    ):
        assert fact(found, path) == value, path
    assert isinstance(fact(found, "dtype"), Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "python serve.py --port 80\n",
        "llamafactory-cli export merge.yaml\n",
        "swift infer --model x\n",
        "echo torchrun train.py --bf16 true --output_dir o\n",
        "# torchrun train.py --bf16 true --output_dir o\n",
        "cat <<EOF\ntorchrun train.py --bf16 true --output_dir o\nEOF\n",
        "python run_clm_no_trainer.py --output_dir o --per_device_train_batch_size 2\n",
    ],
)
def test_what_starts_no_training_known_here(tmp_path: Path, text: str) -> None:
    assert not launch_script.recognises(Document(str(tmp_path / "x.sh"), text, None))


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands(text, "x.sh")]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("A='x y'\nrun $A \"$A\" '$A'", ["run", "x", "y", "x y", "$A"]),
        ("run ${A:-${B:-3}} ${A-} ${C:=4} $C", ["run", "3", "4", "4"]),
        ("run $A$1 `date` \\$A", ["run", OPEN + OPEN, OPEN, "$A"]),
        ('A=1 B="$A"\nA+=2\nrun $A', ["run", "12"]),
        ("run a >out 2>/dev/null <in b", ["run", "a", "b"]),
        ("for A in 1 2; do run $A; done", ["run", OPEN]),
        ("f() { A=2; }\nA=1\nrun $((A*3)) $(($A)) $((1<<2))", ["run", "3", "1", OPEN]),
        ("read A\nrun $A", ["run", OPEN]),
        ('run "a\\"b" \'c\\d\' e\\ f', ["run", 'a"b', "c\\d", "e f"]),
    ],
)
def test_the_words_of_a_command(script: str, expected: list[str]) -> None:
    assert words(script)[-1] == expected


@given(st.text(alphabet=st.sampled_from("aA1 \n\\\"'$`{}()[]=-+#;&|<>@:!\0"), max_size=80))
@settings(max_examples=400, deadline=None)
def test_no_text_stops_the_reader(text: str) -> None:
    for command in commands(text, "x.sh"):
        assert command.words


def test_a_script_that_grows_without_bounds_is_cut_or_refused() -> None:
    doubling = "A=xxxxxxxxxx\n" + "A=$A$A$A$A$A$A$A$A\n" * 50 + "run $A"
    assert len(words(doubling)[-1][1]) < 1 << 18
    lists = "A=(x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'run "${A[@]}"'
    assert len(words(lists)[-1]) < 1 << 15
    with pytest.raises(InputError, match="too many words"):
        words("a " * 60_000)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (
            "model_name_or_path: acme/m\nstage: sft\ndo_train: true\nfinetuning_type: full\ntemplate: llama3\n"
            "per_device_train_batch_size: 1\nbf16: true\n",
            "src/train.py",
        ),
        (
            "model: acme/m\ntuner_type: full\ntorch_dtype: bfloat16\nper_device_train_batch_size: 1\n",
            "swift/cli/sft.py",
        ),
    ],
)
def test_accelerate_brings_its_deepspeed_to_a_trainer_that_names_none(tmp_path: Path, config: str, name: str) -> None:
    (tmp_path / "acc.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
    )
    (tmp_path / "sft.yaml").write_text(config)
    found = read(tmp_path, f"accelerate launch --config_file acc.yaml {name} sft.yaml\n")
    assert fact(found, "deepspeed.zero_stage") == 3
    assert found.locations["training.deepspeed.zero_stage"].line == 4
    off = read(tmp_path, f"accelerate launch --config_file acc.yaml --use_fsdp {name} sft.yaml\n")
    assert fact(off, "deepspeed") is None


def test_a_bare_deepspeed_flag_is_of_a_training_loop_of_its_own(tmp_path: Path) -> None:
    flags = "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --learning_rate 1e-5"
    found = read(tmp_path, f"deepspeed main.py {flags} --zero_stage 3 --deepspeed --output_dir out\n")
    assert fact(found, "per_device_train_batch_size") == 4
    for path in ("framework", "max_grad_norm", "dtype", "deepspeed"):
        assert isinstance(fact(found, path), Unknown), path
    assert "configures DeepSpeed itself" in str(fact(found, "deepspeed"))


def test_a_deepspeed_json_that_a_variable_names_is_unknown_for_that_reason(tmp_path: Path) -> None:
    found = read(tmp_path, "deepspeed t.py --output_dir o --per_device_train_batch_size 1 --deepspeed $CONFIG\n")
    assert "a variable" in str(fact(found, "deepspeed"))


@pytest.mark.parametrize("verb", ["dpo", "orpo"])
def test_early_releases_of_ms_swift_name_the_objective_as_their_verb(tmp_path: Path, verb: str) -> None:
    found = read(tmp_path, f"swift {verb} --model_type yi-6b-chat --sft_type lora --dtype AUTO --batch_size 1\n")
    assert (fact(found, "framework"), fact(found, "objective")) == ("ms-swift", verb)


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ("$(expr 16 / $N)", 8),
        ("$(expr $N \\* 3)", 6),
        ("$(expr 16 / $M)", None),
        ("$(expr 1 / 0)", None),
        ("$(nproc)", None),
    ],
)
def test_an_expr_of_known_numbers_is_computed(tmp_path: Path, given: str, steps: int | None) -> None:
    flags = "--output_dir o --per_device_train_batch_size 1 --bf16 true"
    found = read(tmp_path, f"N=2\ntorchrun t.py {flags} --gradient_accumulation_steps {given}\n")
    value = fact(found, "gradient_accumulation_steps")
    assert value == steps if steps else isinstance(value, Unknown)
