"""Symptoms in a person's words: what is said, what it came with, and what is denied, cured, asked or of others."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck import matrix, symptoms

SAID = [
    # the loss
    ("training loss turns into NaN around step 40", "loss-nan"),
    ("my loss is nan from the second batch on", "loss-nan"),
    ("I get loss=nan as soon as fp16 is on", "loss-nan"),
    ("NaN losses with the new attention backend", "loss-nan"),
    ("The loss goes down for a while, then it becomes NaN.", "loss-nan"),
    ("finetuning gives me NaN after an hour", "loss-nan"),
    ("loss went to inf and never came back", "loss-nan"),
    ("训练到三百步左右 loss 突然变 nan", "loss-nan"),
    ("损失值变成了NaN，重启也一样", "loss-nan"),
    ("开了混合精度之后 loss 全是 nan", "loss-nan"),
    ("跑几步就出 nan", "loss-nan"),
    ("loss 前面正常，后面直接 nan", "loss-nan"),
    ("eval loss is always nan, train loss looks fine", "eval-loss-nan"),
    ("validation loss: nan", "eval-loss-nan"),
    ("验证集 loss 是 nan", "eval-loss-nan"),
    ("评估的时候 eval_loss 显示 nan", "eval-loss-nan"),
    ("loss is exactly 0 at each logging step", "loss-zero"),
    ("The log shows loss: 0.0 for the whole epoch", "loss-zero"),
    ("zero loss from the beginning of SFT", "loss-zero"),
    ("train_loss = 0.0", "loss-zero"),
    ("loss drops to 0 right after warmup", "loss-zero"),
    ("微调的时候 loss 一直为0", "loss-zero"),
    ("loss 恒为 0.0，模型等于没训", "loss-zero"),
    ("损失从第一步开始就是0", "loss-zero"),
    ("loss 掉到 0 了", "loss-zero"),
    ("每次打印都是 'loss': 0.0，不知道为什么", "loss-zero"),
    ('the loss is zero throughout, lines say "loss": 0.0', "loss-zero"),
    ("loss 和 grad_norm 都是 0", "loss-zero grad-norm-zero"),
    ("loss 0.0 and grad_norm nan", "loss-zero grad-norm-nan"),
    ("loss is 0.0, grad norm stuck at 1.4142", "loss-zero grad-norm-constant"),
    ("the loss is four times larger with gradient accumulation 4", "loss-scaled-by-accumulation loss-too-high"),
    ("loss scales with the number of accumulation steps", "loss-scaled-by-accumulation"),
    ("the reported loss is 8x what it used to be", "loss-scaled-by-accumulation"),
    ("loss 没有除以梯度累积步数", "loss-scaled-by-accumulation"),
    ("开梯度累积之后 loss 翻了好几倍", "loss-scaled-by-accumulation"),
    ("the loss is much higher than in the old release", "loss-too-high"),
    ("unusually high loss: training starts with a huge loss", "loss-too-high"),
    ("loss starts at 11.8 for a pretrained model", "loss-too-high"),
    ("loss 比之前高了很多", "loss-too-high"),
    ("loss 特别高，起步就十几", "loss-too-high"),
    ("the loss looks suspiciously low", "loss-too-low"),
    ("loss 低得离谱，异常低", "loss-too-low"),
    ("the loss does not decrease at all", "loss-plateau"),
    ("loss isn't going down whatever rate I use", "loss-plateau"),
    ("loss is stuck at 2.31", "loss-plateau"),
    ("loss plateaus at 1.9", "loss-plateau"),
    ("the loss is stuck", "loss-plateau"),
    ("loss 一直不下降", "loss-plateau"),
    ("loss 降不下来", "loss-plateau"),
    ("模型不收敛", "loss-plateau"),
    ("the loss never changes, not in one digit", "loss-constant"),
    ("loss 保持不变，每步都是同一个数", "loss-constant"),
    ("after 2k steps the loss diverges", "loss-diverges"),
    ("loss keeps rising instead of falling", "loss-diverges"),
    ("loss 越来越大", "loss-diverges"),
    ("训练到后面直接发散", "loss-diverges"),
    ("the loss jumps when I resume from the checkpoint", "loss-spike"),
    ("big spikes in the loss every epoch", "loss-spike"),
    ("恢复训练后 loss 突然升高", "loss-spike"),
    ("loss differs between one GPU and two", "loss-differs"),
    ("the losses do not match those of the previous version", "loss-differs"),
    ("单卡和多卡 loss 对不上", "loss-differs"),
    ("reward stays low and does not improve in GRPO", "reward-flat"),
    ("奖励一直不涨", "reward-flat"),
    # gradients
    ("grad_norm is nan although the loss is a number", "grad-norm-nan"),
    ("gradient norm shows inf", "grad-norm-nan"),
    ("the gradients are all NaN in layer 0", "grad-norm-nan"),
    ("梯度全是 nan", "grad-norm-nan"),
    ("grad_norm: 0.0 in every line", "grad-norm-zero"),
    ("梯度范数一直是 0", "grad-norm-zero"),
    ("grad_norm is always 1.414", "grad-norm-constant"),
    ("grad norm explodes to 250000", "grad-norm-large"),
    ("grad_norm 5.2e7", "grad-norm-large"),
    ("gradients explode after warmup", "grad-norm-large"),
    ("梯度爆炸", "grad-norm-large"),
    ("grad_norm 高得离谱，几百万", "grad-norm-large"),
    ("grad norm is suspiciously tiny", "grad-norm-small"),
    ("the gradients are wrong compared to the eager path", "grad-norm-differs"),
    # memory
    ("it OOMs on a 24 GB card", "out-of-memory"),
    ("runs out of memory while loading the shards", "out-of-memory"),
    ("CUDA out of memory at the first optimizer step", "out-of-memory"),
    ("not enough VRAM for batch 1", "out-of-memory"),
    ("the model does not fit in memory any longer", "out-of-memory"),
    ("加载模型就爆显存", "out-of-memory"),
    ("一开始训练就显存溢出", "out-of-memory"),
    ("保存的时候显存不足", "out-of-memory"),
    ("跑着跑着显存爆了", "out-of-memory"),
    ("80G 都 oom", "out-of-memory"),
    ("主机内存不足，进程直接没了", "host-out-of-memory"),
    ("the host RAM fills up until the node is unusable", "host-out-of-memory"),
    ("GPU memory keeps growing from step to step", "memory-growth"),
    ("looks like a memory leak in the evaluation loop", "memory-growth"),
    ("显存一直在涨", "memory-growth"),
    ("内存不断增长", "memory-growth"),
    ("needs twice the memory of the last release", "memory-higher"),
    ("显存占用比之前高了一倍", "memory-higher"),
    # speed, hanging
    ("training got three times slower", "slow"),
    ("throughput dropped by half", "slow"),
    ("one step takes 40 seconds per iteration", "slow"),
    ("升级之后训练变慢了", "slow"),
    ("训练速度下降明显", "slow"),
    ("it hangs at the first step", "hang"),
    ("the process is stuck while saving", "hang"),
    ("training freezes before evaluation", "hang"),
    ("nothing happens after the model is loaded", "hang"),
    ("generate() never returns", "hang"),
    ("卡在保存模型那一步", "hang"),
    ("程序不动了，GPU 利用率 100%", "hang"),
    ("多卡训练一直卡住", "hang"),
    ("启动之后没反应", "hang"),
    ("NCCL times out after half an hour", "collective-timeout"),
    ("all-reduce timeout on rank 3", "collective-timeout"),
    ("训练几小时后 NCCL 超时", "collective-timeout"),
    ("HCCL 通信超时", "collective-timeout"),
    # output
    ("the model answers gibberish", "garbage-output"),
    ("output is garbage after merging", "garbage-output"),
    ("only random tokens come out", "garbage-output"),
    ("推理输出全是乱码", "garbage-output"),
    ("微调完胡言乱语", "garbage-output"),
    ("the model repeats the same sentence", "repeated-output"),
    ("generation loops on one word over and over", "repeated-output"),
    ("回答一直重复一句话", "repeated-output"),
    ("the output is empty", "empty-output"),
    ("it returns an empty string for each prompt", "empty-output"),
    ("输出为空", "empty-output"),
    ("generation does not stop", "endless-generation"),
    ("the model keeps talking until max_new_tokens", "endless-generation"),
    ("生成停不下来", "endless-generation"),
    ("回答完了也不结束，一直输出", "endless-generation"),
    ("it answers and then asks itself the next question", "self-talk"),
    ("the model invents a new user turn", "self-talk"),
    ("微调后自问自答", "self-talk"),
    ("the eos token is missing from the labels", "wrong-special-tokens"),
    ("two BOS tokens at the start of each sample", "wrong-special-tokens"),
    ("回答里会出现 <|im_end|>", "wrong-special-tokens"),
    ("logits are nan with left padding", "output-nan"),
    ("generated images are black", "output-nan"),
    ("生成的图全黑", "output-nan"),
    ("accuracy dropped by ten points", "lower-accuracy"),
    ("the results are worse than with the old version", "lower-accuracy"),
    ("微调后效果变差", "lower-accuracy"),
    ("outputs are incorrect for padded batches", "wrong-output"),
    ("推理结果不对", "wrong-output"),
    ("the model ignores the image", "input-ignored"),
    # weights
    ("the saved adapter is empty", "adapter-empty"),
    ("adapter_model.safetensors is only 48 bytes", "adapter-empty"),
    ("保存的 adapter 是空的", "adapter-empty"),
    ("the adapter has no effect", "adapter-has-no-effect"),
    ("fine-tuned model behaves like the base model", "adapter-has-no-effect"),
    ("lora 加载了但是和原模型输出一样", "adapter-has-no-effect"),
    ("训练完没有任何效果", "adapter-has-no-effect"),
    ("the model learns nothing", "nothing-learned"),
    ("weights do not change during training", "nothing-learned"),
    ("模型什么都没学到", "nothing-learned"),
    ("参数没有更新", "nothing-learned"),
    ("all LoRA weights are NaN in the checkpoint", "weights-nan"),
    ("some weights are newly initialized", "weights-not-loaded"),
    ("权重没有加载进去", "weights-not-loaded"),
    # cannot load, import, build, install
    ("I cannot load the tokenizer", "load-failure"),
    ("loading the checkpoint fails", "load-failure"),
    ("模型加载失败", "load-failure"),
    ("无法加载 tokenizer", "load-failure"),
    ("resuming from the checkpoint crashes", "resume-failure"),
    ("断点续训报错", "resume-failure"),
    ("it fails when saving the model", "save-failure"),
    ("保存模型时报错", "save-failure"),
    ("importing peft fails", "import-error"),
    ("can't import trl any longer", "import-error"),
    ("导入 vllm 就报错", "import-error"),
    ("flash-attn does not build", "build-failure"),
    ("fused_adam 编译不过", "build-failure"),
    ("compiling the extension fails", "build-failure"),
    ("编译 flash-attn 失败", "build-failure"),
    ("pip install ends with an error", "install-failure"),
    ("bitsandbytes 装不上", "install-failure"),
    # processes and hardware
    ("python segfaults on import", "process-crash"),
    ("training dies at step 90 without any error message", "process-crash"),
    ("Bus error in a data loader worker", "process-crash"),
    ("程序没有任何报错就退出了", "process-crash"),
    ("an illegal memory access in the first backward pass", "illegal-memory-access"),
    ("Segmentation fault (core dumped) after the model loads", "process-crash"),
    ("训练直接闪退", "process-crash"),
    ("the process gets killed without a message", "killed"),
    ("进程被系统杀掉", "killed"),
    ("the GPU falls off the bus", "device-lost"),
    ("训练中途掉卡", "device-lost"),
    ("torch does not see the GPU", "cuda-unavailable"),
    ("torch.cuda.is_available() returns False", "cuda-unavailable"),
    ("检测不到显卡", "cuda-unavailable"),
    ("the driver is too old", "driver-too-old"),
    ("显卡驱动太旧", "driver-too-old"),
]

NOT_SEEN = [
    "the loss goes down nicely, but copying a param with shape torch.Size([0]) from the checkpoint stops it",
    "[ERROR] 2024-09-01 (PID:1234, Device:0) ERR01100 OPS call acl api failed",
    "EZ9999: the api call failed",
    # cured or avoided
    "no NaN any more",
    "there is no NaN in the loss now",
    "the loss is not nan with torch 2.4.1",
    "with 2.4.1 the NaN is gone",
    "this fixes the NaN loss",
    "falls smoothly instead of NaN",
    "I set the batch size to 1 to avoid OOM",
    "checkpointing prevents running out of memory",
    "the hang disappeared after the downgrade",
    "it no longer hangs",
    "it does not hang with one GPU",
    "no out of memory error on the larger card",
    "NaN does not occur in fp32",
    "the memory leak was fixed in that release",
    "loss 不再是 nan",
    "loss 就不是 nan 了",
    "没有出现 nan",
    "换成 bf16 后 nan 消失了",
    "降级之后乱码的问题就好了",
    "为了避免爆显存，batch 设为 1",
    "没有 OOM",
    "单卡不会卡住",
    "显存溢出已解决",
    "训练正常，loss 稳定下降",
    # asked about, general, of others
    "what does NaN mean",
    "What is OOM?",
    "how do I detect NaN in the gradients",
    "fp16 may overflow and give NaN",
    "a bad learning rate can lead to loss spikes",
    "other users report that it hangs",
    "a colleague gets NaN on his machine",
    "什么是显存溢出",
    "nan 是什么意思",
    "fp16 可能导致 loss 变成 nan",
    "别人说会爆显存",
    "听说新版本会卡住",
    # words that only look like it
    "pip freeze shows torch 2.5.0",
    "I freeze the vision tower",
    "loss decreases from 2.0 to 0.4",
    "loss is 0.01 after one epoch",
    "warmup_ratio 0 and loss_type sigmoid",
    "zero stage 0, loss looks good",
    "the slow tokenizer is used",
    "I use ZeRO stage 3",
    "学习率照常变化",
    "the garbage collector runs each step",
    "grad_norm is 0.8",
    "gradient accumulation 4, gradient checkpointing on",
    "grad_norm 1.2, loss 1.9",
    "please run nvidia-smi and post the output",
    "模型生成长度 512",
    # a program's own lines and code, which other readers take
    ">>> loss = float('nan')",
    "{'loss': nan, 'grad_norm': nan, 'epoch': 0.1}",
    "> loss is nan",
    "```\nloss is nan\n```",
]

CHANGES = [
    ("the loss is nan when batch size is larger than 1", "batch-above-one"),
    ("batch_size 设为 4 之后 loss 变成 nan", "batch-above-one"),
    ("hangs with two GPUs, fine on one", "several-ranks"),
    ("八卡训练时卡住", "several-ranks"),
    ("多机训练 NCCL 超时", "several-nodes"),
    ("the loss jumps after resuming", "resume"),
    ("loss is 0 under zero2", "zero-stage"),
    ("loss is nan since I upgraded torch", "upgrade"),
    ("升级 transformers 之后，显存溢出", "upgrade"),
    ("out of memory with the latest model files", "new-model-files"),
    ("OOM while saving", "at-save"),
    ("保存时卡住", "at-save"),
    ("it hangs at evaluation", "at-evaluation"),
    ("评估时爆显存", "at-evaluation"),
    ("OOM during loading", "loading"),
    ("stuck at the first step", "first-step"),
    ("after 300 steps the loss is nan", "after-steps"),
    ("第 20 步之后 loss 变成 nan", "after-steps"),
    ("loss stays at 0.0", ""),
    ("the output is garbage after reloading", "after-save"),
    ("loss is nan with packing", "packing"),
    ("gibberish with 4-bit models", "quantised"),
    ("memory grows step by step", "growing"),
    ("OOM with long sequences", "long-sequence"),
    ("loss is too high with gradient accumulation", "gradient-accumulation"),
    ("it hangs in generate", "in-generation"),
    ("batch 2 turns the loss to nan", ""),
    ("the loss is nan", ""),
]

PLEAS = [
    "Please help.",
    "How can I fix this?",
    "Any ideas?",
    "Is this a bug?",
    "Thanks in advance!",
    "请问怎么解决？",
    "求大佬指点。",
    "有人遇到过吗？",
    "I am new to this.",
    "torch 2.4.0, transformers 4.44.2.",
    "The model is Qwen2-7B.",
    "环境是 torch 2.4.0，单机八卡。",
]


def names(text: str) -> set[str]:
    return {sighting.symptom for sighting in symptoms.read_words(text, "report.md")}


@pytest.mark.parametrize(("text", "expected"), SAID, ids=[text for text, _ in SAID])
def test_symptom_is_read_from_words(text: str, expected: str) -> None:
    assert names(text) == set(expected.split())


@pytest.mark.parametrize("text", NOT_SEEN)
def test_no_symptom_is_read_from_words(text: str) -> None:
    assert names(text) == set()


@pytest.mark.parametrize(("text", "change"), CHANGES, ids=[text for text, _ in CHANGES])
def test_change_that_a_symptom_came_with(text: str, change: str) -> None:
    found = symptoms.read_words(text, "report.md")
    assert found and {sighting.change for sighting in found} == {change}


def test_why_question_is_a_sighting() -> None:
    assert names("Why is my training loss zero?") == {"loss-zero"}
    assert names("为什么训练的时候 loss 一直是 0？") == {"loss-zero"}
    assert names("How do I fix the NaN loss?") == {"loss-nan"}
    assert names("重启解决不了显存溢出") == {"out-of-memory"}


def test_cure_in_another_clause_keeps_the_sighting() -> None:
    assert names("torch 2.5.0 的时候 loss 是 nan，换回 2.4.1 就好了") == {"loss-nan"}
    assert names("It hangs with NCCL 2.20. With 2.21 it is fine.") == {"hang"}


def test_sighting_says_where_and_in_which_words() -> None:
    text = "# Title\n\nSomething else.\n\nIt runs, but the loss\nbecomes nan there. Then\nthe job is stuck.\n"
    found = symptoms.read_words(text, "report.md")
    assert [(each.symptom, each.location.line, each.origin) for each in found] == [
        ("loss-nan", 5, "words"),
        ("hang", 6, "words"),
    ]
    assert found[0].text == "the loss becomes nan there" and found[0].location.file == "report.md"


@given(
    st.sampled_from(SAID), st.lists(st.sampled_from(PLEAS), max_size=3), st.lists(st.sampled_from(PLEAS), max_size=3)
)
def test_pleas_and_facts_around_change_nothing(said: tuple[str, str], before: list[str], behind: list[str]) -> None:
    text = "\n".join([" ".join(before), said[0] + ("." if said[0][-1].isascii() else "。") + " " + " ".join(behind)])
    assert names(text) == set(said[1].split())


def test_every_symptom_of_a_phrase_is_in_the_vocabulary(known: matrix.Matrix) -> None:
    used = {row["symptom"] for row in known.table("symptom-phrases")["phrases"]}
    assert len(used) >= 60 and used <= known.table("symptoms")["symptoms"].keys()


def test_tokens_of_the_table_are_told_apart(known: matrix.Matrix) -> None:
    rows = known.table("symptom-phrases")
    tokens = rows["tokens"].keys()
    assert not [(one, other) for one in tokens for other in tokens if one != other and one in other]
    used = {
        word
        for row in rows["phrases"]
        for each in row["patterns"]
        for word in re.findall("[A-Z]{3,}", each.replace("FILL", " "))
    }
    assert used <= tokens


@pytest.mark.parametrize("filling", ["loss ", "一直", "no ", "loss,", "a step was done and then\n", "(", "'"])
def test_long_and_odd_texts_take_no_longer(filling: str) -> None:
    text = "the loss is nan\n\n" + filling * (400_000 // len(filling))
    start = time.process_time()
    assert "loss-nan" in names(text)
    assert time.process_time() - start < 10
