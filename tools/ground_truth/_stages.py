"""The stages of tiny training runs, in the interpreter of a stack of any age; imports nothing of ours.

    python _stages.py FOLDER STAGE...

Each stage runs in a process of its own, forked after torch and transformers were imported as far as they can be. A
line of JSON for each: its name, and null where it passed or what `_failure.py` tells of its error. A stage asks the
installed release for the parameters it has, so that it is written as that release documents.
"""

import inspect
import json
import os
import signal
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)
from _failure import WrongNumber, failure  # noqa: E402

sys.path[:] = [folder for folder in sys.path if folder != _HERE]

IMPORTS = {
    "import transformers": "from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments",
    "import peft": "from peft import LoraConfig, PeftModel, get_peft_model",
    "import accelerate": "from accelerate import Accelerator",
    "import trl": "from trl import SFTTrainer",
    "import datasets": "import datasets",
    "import deepspeed": "import deepspeed",
    "import bitsandbytes": "import bitsandbytes",
    "import sentence-transformers": "from sentence_transformers import SentenceTransformer, losses",
    "import setfit": "from setfit import SetFitModel",
    "import FlagEmbedding": "from FlagEmbedding import FlagModel",
    "import diffusers": "from diffusers import DDPMScheduler, StableDiffusionPipeline, UNet2DModel",
    "import optimum": "from optimum.gptq import GPTQQuantizer",
    "import auto-gptq": "from auto_gptq import AutoGPTQForCausalLM",
    "import autoawq": "from awq import AutoAWQForCausalLM",
    "import pytorch-lightning": "import pytorch_lightning",
    "import lightning": "import lightning.pytorch",
    "import torchmetrics": "import torchmetrics",
    "import timm": "import timm",
    "import open-clip-torch": "import open_clip",
    "import torchvision": "import torchvision",
    "import torchao": "import torchao.quantization",
    "import torchtune": "from torchtune.models.llama2 import llama2_7b",
    "import liger-kernel": "from liger_kernel.transformers import apply_liger_kernel_to_llama",
    "import gradio": "import gradio",
    "import wandb": "import wandb",
    "import tensorboard": "from torch.utils.tensorboard import SummaryWriter",
    "import evaluate": "import evaluate",
}
FIRST = (
    "import torch",
    "import torch._dynamo",
    "import pandas, pyarrow",
    "import scipy.stats, sklearn.metrics",
    "from transformers import AutoModelForCausalLM, BertModel, LlamaForCausalLM, PreTrainedTokenizerFast, Trainer",
)
SECONDS = 240


def takes(call, name):
    """Whether this release's callable has a parameter of that name."""
    return name in inspect.signature(call).parameters


def model(vocabulary=128):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=vocabulary, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return LlamaForCausalLM(config)


WORDS = ("a", "the", "red", "blue", "fast", "slow", "cat", "dog", "runs", "sleeps", "here", "there")


def tokenizer(folder, special=("<pad>", "<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]")):
    """A word-level tokenizer, saved in the folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate((*special, *WORDS))}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]", model_max_length=32,
    )  # fmt: skip
    fast.save_pretrained(folder)
    return fast


def sentences(count=8):
    return [" ".join(WORDS[(at + step * 5) % len(WORDS)] for step in range(6)) for at in range(count)]


def rows(count=8, length=16):
    import torch

    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 128, (count, length), generator=generator)
    return [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in tokens]


def asked(arguments, folder, **settings):
    """The arguments of a short run on the processor, in the words of this release."""
    on_cpu = {"use_cpu": True} if takes(arguments.__init__, "use_cpu") else {"no_cuda": True}
    return {
        "output_dir": folder, "report_to": [], "logging_steps": 1, "learning_rate": 1e-3, "max_grad_norm": 0.0,
        "per_device_train_batch_size": 2, "max_steps": 3, "lr_scheduler_type": "constant", "seed": 0,
        "save_strategy": "no", "optim": "adamw_torch", **on_cpu, **settings,
    }  # fmt: skip


def trainer(trained, folder, **settings):
    from transformers import Trainer, TrainingArguments, default_data_collator

    arguments = TrainingArguments(**asked(TrainingArguments, folder, **settings))
    return Trainer(model=trained, args=arguments, train_dataset=rows(), data_collator=default_data_collator)


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


def adapted():
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


def lora(folder):
    trained = adapted()
    learns(trained, folder)
    trained.save_pretrained(os.path.join(folder, "adapter"))
    from peft import PeftModel

    reloaded = PeftModel.from_pretrained(model(), os.path.join(folder, "adapter"))
    same_logits(trained, reloaded)


def merge(folder):
    """A merged adapter computes what the adapter and its base compute."""
    import torch

    trained = adapted()
    with torch.no_grad():
        for name, weight in trained.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.02)
    same_logits(trained, trained.merge_and_unload())


def same_logits(one, other):
    import torch

    tokens = rows(1)[0]["input_ids"][None]
    with torch.no_grad():
        first = one.eval()(tokens).logits.clone()
        apart = float((first - other.eval()(tokens).logits).abs().max())
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
    run = trainer(model(), folder, max_steps=4)
    run.train(resume_from_checkpoint=os.path.join(folder, "checkpoint-2"))
    if run.state.global_step != 4:
        raise WrongNumber(f"the resumed run ended at step {run.state.global_step}")


def generate(folder):
    """Greedy decoding with the cache gives the tokens that decoding without it gives."""
    tokens = rows(1)[0]["input_ids"][None]
    written = [
        model().eval().generate(tokens, max_new_tokens=4, do_sample=False, use_cache=cached, eos_token_id=None)
        for cached in (True, False)
    ]
    if written[0].tolist() != written[1].tolist():
        raise WrongNumber("the cache changes what is generated")


def tokens(folder):
    """A saved tokenizer is loaded again and pads a batch."""
    from transformers import AutoTokenizer

    tokenizer(folder)
    batch = AutoTokenizer.from_pretrained(folder)(["the cat", "the red cat runs"], padding=True, return_tensors="pt")
    if batch["input_ids"].shape != (2, 4) or batch["attention_mask"].sum() != 6:
        raise WrongNumber(f"the padded batch is {batch['input_ids'].tolist()}")


def accelerated(folder):
    """The loop of accelerate's quick tour, saved and loaded."""
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    trained = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=2)
    before = weights(trained)
    trained, optimizer, data = accelerator.prepare(trained, optimizer, data)
    for (batch,) in data:
        with accelerator.accumulate(trained):
            accelerator.backward(trained(batch).pow(2).mean())
            accelerator.clip_grad_norm_(trained.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    accelerator.wait_for_everyone()
    after = weights(accelerator.unwrap_model(trained))
    if not distance(before, after) > 0:
        raise WrongNumber("four steps changed no weight")
    accelerator.save_state(os.path.join(folder, "state"))
    accelerator.load_state(os.path.join(folder, "state"))


def table(folder):
    """Rows are mapped, written, read again and given as tensors."""
    from datasets import Dataset, load_dataset, load_from_disk

    rows = Dataset.from_dict({"text": sentences(), "label": [0, 1] * 4})
    mapped = rows.map(lambda batch: {"length": [len(text.split()) for text in batch["text"]]}, batched=True)
    mapped.save_to_disk(os.path.join(folder, "saved"))
    loaded = load_from_disk(os.path.join(folder, "saved")).train_test_split(test_size=2, seed=0)["train"]
    loaded.set_format("torch", columns=["label", "length"])
    lines = os.path.join(folder, "rows.json")
    with open(lines, "w") as stream:
        stream.writelines(json.dumps({"text": text}) + "\n" for text in sentences())
    read = load_dataset("json", data_files=lines, split="train", cache_dir=os.path.join(folder, "cache"))
    if len(loaded) != 6 or int(loaded[0]["length"]) != 6 or len(read) != 8:
        raise WrongNumber("rows are lost")


def sft(folder):
    """SFTTrainer as its release documents it: SFTConfig since trl 0.9, processing_class since 0.12."""
    import trl
    from datasets import Dataset
    from transformers import TrainingArguments

    config = trl.SFTConfig if _has(trl, "SFTConfig") else TrainingArguments
    beside, settings = {}, {}
    for name, value in (("dataset_text_field", "text"), ("max_length", 16), ("max_seq_length", 16)):
        if takes(config.__init__, name) and not settings.keys() & {"max_length"}:
            settings[name] = value
        elif config is TrainingArguments and takes(trl.SFTTrainer.__init__, name):
            beside[name] = value
    words = tokenizer(os.path.join(folder, "tokenizer"))
    beside["processing_class" if takes(trl.SFTTrainer.__init__, "processing_class") else "tokenizer"] = words
    arguments = config(**asked(config, folder, max_steps=2, bf16=False, gradient_checkpointing=False, **settings))
    data = Dataset.from_dict({"text": sentences()})
    run = trl.SFTTrainer(model=model(), args=arguments, train_dataset=data, **beside)
    run.train()
    losses(run)


def dpo(folder):
    """DPOTrainer as its release documents it: DPOConfig since trl 0.9, processing_class since 0.12."""
    import trl
    from datasets import Dataset
    from transformers import TrainingArguments

    config = trl.DPOConfig if _has(trl, "DPOConfig") else TrainingArguments
    limits = {"max_length": 24, "max_prompt_length": 12}
    beside, settings = {}, {"beta": 0.1}
    if config is TrainingArguments:
        settings = {"remove_unused_columns": False}
        beside = {"beta": 0.1, **limits}
    else:
        settings.update((name, value) for name, value in limits.items() if takes(config.__init__, name))
    words = tokenizer(os.path.join(folder, "tokenizer"))
    beside["processing_class" if takes(trl.DPOTrainer.__init__, "processing_class") else "tokenizer"] = words
    arguments = config(**asked(config, folder, max_steps=2, bf16=False, gradient_checkpointing=False, **settings))
    data = Dataset.from_dict({"prompt": ["the cat "] * 8, "chosen": sentences(), "rejected": sentences()[::-1]})
    run = trl.DPOTrainer(model=model(), ref_model=model(), args=arguments, train_dataset=data, **beside)
    run.train()
    losses(run)


def _has(module, name):
    """Whether a module offers a name, by its list where it loads lazily."""
    offered = getattr(module, "__all__", None) or dir(module)
    return name in offered or name in dir(module)


def embedder(folder):
    """A tiny BERT with mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel

    base = os.path.join(folder, "bert")
    tokenizer(base)
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=32,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(base)
    encoder = models.Transformer(base, max_seq_length=16)
    return SentenceTransformer(modules=[encoder, models.Pooling(32)], device="cpu")


def embed(folder):
    """A model of sentence-transformers is fitted for an epoch, saved and loaded."""
    import numpy
    from sentence_transformers import InputExample, SentenceTransformer, losses
    from torch.utils.data import DataLoader

    fitted = embedder(folder)
    pairs = [InputExample(texts=[one, other], label=0.5) for one, other in zip(sentences(), sentences()[::-1])]
    data = DataLoader(pairs, shuffle=False, batch_size=2)
    fitted.fit(train_objectives=[(data, losses.CosineSimilarityLoss(fitted))], epochs=1, show_progress_bar=False)
    fitted.save(os.path.join(folder, "saved"))
    loaded = SentenceTransformer(os.path.join(folder, "saved"), device="cpu")
    apart = float(numpy.abs(fitted.encode(sentences(2)) - loaded.encode(sentences(2))).max())
    if not apart < 1e-4:
        raise WrongNumber(f"the embeddings differ by {apart:.3g} after saving and loading")


def diffuse(folder):
    """A tiny UNet takes a step of its scheduler, is saved and loaded."""
    import torch
    from diffusers import DDPMScheduler, UNet2DModel

    settings = {"sample_size": 8, "block_out_channels": (32, 32), "layers_per_block": 1, "norm_num_groups": 8}
    blocks = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
    denoiser = UNet2DModel(in_channels=3, out_channels=3, **settings, **blocks)
    scheduler = DDPMScheduler(num_train_timesteps=10)
    image, noise = torch.randn(1, 3, 8, 8), torch.randn(1, 3, 8, 8)
    noisy = scheduler.add_noise(image, noise, torch.tensor([3]))
    torch.nn.functional.mse_loss(denoiser(noisy, 3).sample, noise).backward()
    with torch.no_grad():
        scheduler.step(denoiser(noisy, 3).sample, 3, noisy)
    denoiser.save_pretrained(os.path.join(folder, "unet"))
    UNet2DModel.from_pretrained(os.path.join(folder, "unet"))


def _lightning(lightning, folder):
    import torch

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            loss = self.layer(batch[0]).pow(2).mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=2)
    run = lightning.Trainer(
        max_steps=2, accelerator="cpu", devices=1, logger=False, default_root_dir=folder, enable_progress_bar=False
    )
    run.fit(Line(), data)
    if run.global_step != 2:
        raise WrongNumber(f"the run ended at step {run.global_step}")


def lightning(folder):
    import lightning.pytorch

    _lightning(lightning.pytorch, folder)


def pytorch_lightning(folder):
    import pytorch_lightning

    _lightning(pytorch_lightning, folder)


def see(folder):
    import timm
    import torch

    judged = timm.create_model("resnet18", pretrained=False, num_classes=3).eval()
    if judged(torch.randn(1, 3, 64, 64)).shape != (1, 3):
        raise WrongNumber("the model gives another shape")


def liger(folder):
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    apply_liger_kernel_to_llama()


def logged(folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        writer.add_scalar("loss", 1.0, 1)


TRAINING = {
    "full training": full,
    "accumulation": accumulation,
    "LoRA": lora,
    "left padding": padding,
    "save and reload": reload,
    "resume": resume,
}
CALLS = {
    "generate": (generate, ("transformers",)),
    "tokenizer": (tokens, ("transformers",)),
    "accelerate loop": (accelerated, ("accelerate",)),
    "datasets": (table, ("datasets",)),
    "merge": (merge, ("transformers", "peft")),
    "SFT": (sft, ("transformers", "trl", "datasets")),
    "DPO": (dpo, ("transformers", "trl", "datasets")),
    "sentence-transformers fit": (embed, ("sentence-transformers", "datasets", "accelerate")),
    "diffusers step": (diffuse, ("diffusers",)),
    "lightning fit": (lightning, ("lightning",)),
    "pytorch-lightning fit": (pytorch_lightning, ("pytorch-lightning",)),
    "timm model": (see, ("timm",)),
    "liger patch": (liger, ("liger-kernel", "transformers")),
    "tensorboard": (logged, ("tensorboard",)),
}


def needs(stage):
    """The distributions without which a stage says nothing of a stack."""
    if stage in IMPORTS:
        return (stage.partition(" ")[2],)
    return (
        CALLS[stage][1] if stage in CALLS else ("transformers", "accelerate", *(("peft",) if stage == "LoRA" else ()))
    )


def run(stage, folder):
    if stage in IMPORTS:
        exec(IMPORTS[stage], {"__name__": "user"})
    elif stage in TRAINING:
        TRAINING[stage](folder)
    else:
        CALLS[stage][0](folder)


def forked(stage, folder):
    """What a stage ended with in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(2, 1)
        signal.alarm(SECONDS)
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        verdict = None
        try:
            run(stage, folder)
        except BaseException as error:  # noqa: BLE001
            verdict = failure(error)
        with os.fdopen(writer, "w") as stream:
            json.dump(verdict, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if said else failure(None, f"the process ended with status {status}")


def served(room, stages, first, said):
    """Run the stages where every statement of `first` can be imported, and return the one that cannot."""
    child = os.fork()
    if not child:
        for at, statement in enumerate(first):
            try:
                exec(statement, {})
            except BaseException:  # noqa: BLE001
                os._exit(1 + at)
        for stage in stages:
            verdict = forked(stage, os.path.join(room, stage.replace(" ", "-")))
            print(json.dumps({"stage": stage, "verdict": verdict}), file=said, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    failed = os.waitstatus_to_exitcode(status)
    return first[failed - 1] if failed > 0 else None


if __name__ == "__main__":
    room, *stages = sys.argv[1:]
    first, said = list(FIRST), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    while failed := served(room, stages, first, said):
        first.remove(failed)
