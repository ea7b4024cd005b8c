"""One stage of a tiny training run, in the interpreter of a stack of any age; imports nothing of ours.

    python _stages.py STAGE FOLDER

The last line of its output is JSON: null where the stage passed, else the error, its text, the files its traceback
runs through, and whether it is a wrong number rather than an exception.
"""

import inspect
import json
import os
import sys
import traceback

IMPORTS = {
    "import transformers": "from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments",
    "import peft": "from peft import LoraConfig, PeftModel, get_peft_model",
    "import accelerate": "from accelerate import Accelerator",
    "import trl": "from trl import DPOTrainer, SFTTrainer",
    "import datasets": "import datasets",
    "import deepspeed": "import deepspeed",
    "import bitsandbytes": "import bitsandbytes",
}


class WrongNumber(Exception):
    """The stage ran to its end and what it computed is not right."""


def model():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=128, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def rows(count=8, length=16):
    import torch

    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 128, (count, length), generator=generator)
    return [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in tokens]


def trainer(trained, folder, **settings):
    from transformers import Trainer, TrainingArguments, default_data_collator

    known = inspect.signature(TrainingArguments.__init__).parameters
    on_cpu = {"use_cpu": True} if "use_cpu" in known else {"no_cuda": True}
    asked = {
        "output_dir": folder, "report_to": [], "logging_steps": 1, "learning_rate": 1e-3, "max_grad_norm": 0.0,
        "per_device_train_batch_size": 2, "max_steps": 3, "lr_scheduler_type": "constant", "seed": 0,
        "save_strategy": "no", "optim": "adamw_torch", **on_cpu, **settings,
    }  # fmt: skip
    return Trainer(
        model=trained, args=TrainingArguments(**asked), train_dataset=rows(), data_collator=default_data_collator
    )


def losses(finished):
    import math

    seen = [row["loss"] for row in finished.state.log_history if "loss" in row]
    if not seen or not all(math.isfinite(loss) and loss > 0 for loss in seen):
        raise WrongNumber(f"the losses are {seen}")
    return seen


def weights(trained):
    return {name: value.detach().clone() for name, value in trained.state_dict().items()}


def distance(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def learns(trained, folder):
    """Three steps give finite losses and move what is trained."""
    before = weights(trained)
    run = trainer(trained, folder)
    run.train()
    losses(run)
    if not distance(before, weights(trained)) > 0:
        raise WrongNumber("three steps changed no weight")


def full(folder):
    learns(model(), folder)


def accumulation(folder):
    """One step of plain SGD on four rows at once and on four times one row moves the weights alike."""
    moved = []
    for size, steps in ((4, 1), (1, 4)):
        trained = model()
        run = trainer(
            trained, folder, per_device_train_batch_size=size, gradient_accumulation_steps=steps, max_steps=1,
            optim="sgd", learning_rate=0.1,
        )  # fmt: skip
        run.train_dataset = rows(4)
        run.train()
        moved.append(weights(trained))
    step, apart = distance(moved[0], weights(model())), distance(*moved)
    if apart > 0.02 * step:
        raise WrongNumber(f"the update differs by {apart / step:.2f} of its size")


def lora(folder):
    from peft import LoraConfig, get_peft_model

    trained = get_peft_model(model(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    learns(trained, folder)
    trained.save_pretrained(os.path.join(folder, "adapter"))
    from peft import PeftModel

    reloaded = PeftModel.from_pretrained(model(), os.path.join(folder, "adapter"))
    same_logits(trained, reloaded)


def same_logits(one, other):
    import torch

    tokens = rows(1)[0]["input_ids"][None]
    with torch.no_grad():
        apart = float((one.eval()(tokens).logits - other.eval()(tokens).logits).abs().max())
    if not apart < 1e-4:
        raise WrongNumber(f"the logits differ by {apart:.3g} after saving and loading")


def padding(folder):
    """The logits of a row do not depend on padding to its left."""
    import torch

    tokens = rows(1)[0]["input_ids"][None]
    padded = torch.nn.functional.pad(tokens, (6, 0))
    mask = (padded != 0).long()
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    judged = model().eval()
    with torch.no_grad():
        alone = judged(tokens).logits
        beside = judged(padded, attention_mask=mask, position_ids=positions).logits[:, 6:]
    apart = float((alone - beside).abs().max())
    if not apart < 1e-3:
        raise WrongNumber(f"left padding moves the logits by {apart:.3g}")


def reload(folder):
    from transformers import AutoModelForCausalLM

    trained = model()
    run = trainer(trained, folder)
    run.train()
    run.save_model(os.path.join(folder, "saved"))
    same_logits(trained, AutoModelForCausalLM.from_pretrained(os.path.join(folder, "saved")))


def resume(folder):
    trainer(model(), folder, max_steps=2, save_strategy="steps", save_steps=2).train()
    run = trainer(model(), folder, max_steps=4, save_strategy="steps", save_steps=2)
    run.train(resume_from_checkpoint=os.path.join(folder, "checkpoint-2"))
    if run.state.global_step != 4:
        raise WrongNumber(f"the resumed run ended at step {run.state.global_step}")


TRAINING = {
    "full training": full,
    "accumulation": accumulation,
    "LoRA": lora,
    "left padding": padding,
    "save and reload": reload,
    "resume": resume,
}


def run(stage, folder):
    if stage in IMPORTS:
        exec(IMPORTS[stage], {"__name__": "user"})
    else:
        TRAINING[stage](folder)


if __name__ == "__main__":
    verdict = None
    try:
        run(sys.argv[1], sys.argv[2])
    except BaseException as error:  # noqa: BLE001
        frames = traceback.extract_tb(error.__traceback__)
        verdict = {
            "error": f"{type(error).__name__}: {str(error)[:2000]}",
            "files": [frame.filename for frame in frames],
            "wrong": isinstance(error, WrongNumber),
        }
    print(json.dumps(verdict))
    sys.stdout.flush()
    os._exit(0)
