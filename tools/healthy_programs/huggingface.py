"""transformers, peft and accelerate, with the Trainer and without it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers import Trainer, TrainingArguments

from compatcheck.integrations.transformers import CompatGuard
from tools.healthy_programs.draw import Draw

_ROWS = 24


def _llama(draw: Draw, **options: Any) -> Any:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": draw.of(1, 2), "vocab_size": 40}
    heads = {"num_attention_heads": 2, "num_key_value_heads": draw.of(1, 2), "max_position_embeddings": 32}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **heads, **options}))


def _gpt2(draw: Draw, **options: Any) -> Any:
    sizes = {"n_embd": 16, "n_layer": draw.of(1, 2), "n_head": 2, "vocab_size": 40, "n_positions": 32}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**sizes, **options}))


def _rows(draw: Draw, *, padded: bool = False, masked: bool = False) -> list[dict[str, Any]]:
    rows = []
    for tokens in draw.tokens(size=1):
        ids, mask = tokens[0].clone(), torch.ones(10, dtype=torch.long)
        if padded:
            length = draw.random.randint(4, 10)
            ids[length:], mask[length:] = 0, 0
        labels = ids.masked_fill(mask == 0, -100)
        if masked:
            labels[: draw.random.randint(1, 9)] = -100
        rows.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return rows


def _trainer(draw: Draw, model: Any, rows: Any, **options: Any) -> Any:
    guard = CompatGuard(check=False, every=1, window=9, share=1.0)
    stated = {"per_device_train_batch_size": 2, "max_steps": draw.steps, "logging_steps": draw.of(1, 5), "seed": 3}
    arguments = TrainingArguments(
        output_dir=str(draw.folder),
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        **{**stated, **options},
    )
    draw.guards.append(guard)
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:4], callbacks=[guard])
    trainer.train()
    return trainer


def trainer_causal_model(draw: Draw) -> None:
    trainer = _trainer(draw, _llama(draw, attention_dropout=0.1), _rows(draw, padded=True))
    trainer.evaluate()


def trainer_accumulation_and_evaluation(draw: Draw) -> None:
    options = {"gradient_accumulation_steps": draw.of(2, 3), "eval_strategy": "steps", "eval_steps": 5}
    _trainer(draw, _gpt2(draw), _rows(draw, masked=True), **options, warmup_steps=3)


def trainer_bfloat16(draw: Draw) -> None:
    _trainer(draw, _llama(draw), _rows(draw, padded=True), bf16=True, eval_strategy="steps", eval_steps=8)


def trainer_checkpointing(draw: Draw) -> None:
    options = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": draw.of(True, False)}}
    _trainer(draw, _llama(draw), _rows(draw), **options, optim=draw.of("adamw_torch", "adafactor", "sgd"))


def trainer_lora(draw: Draw) -> None:
    from peft import LoraConfig, get_peft_model

    configuration = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"], r=4, lora_dropout=0.05)
    _trainer(draw, get_peft_model(_llama(draw), configuration), _rows(draw, masked=True), learning_rate=2e-4)


def trainer_lora_with_saved_modules(draw: Draw) -> None:
    from peft import LoraConfig, get_peft_model

    configuration = LoraConfig(target_modules=["q_proj"], modules_to_save=["lm_head"], use_dora=draw.of(True, False))
    _trainer(draw, get_peft_model(_llama(draw), configuration), _rows(draw))


def trainer_classifier(draw: Draw) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=40, num_labels=3, **sizes))
    rows = [{**row, "labels": torch.tensor(draw.random.randrange(3))} for row in _rows(draw, padded=True)]
    _trainer(draw, model, rows, label_smoothing_factor=draw.of(0.0, 0.1), eval_strategy="steps", eval_steps=8)


def trainer_masked_model(draw: Draw) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=40, **sizes))
    rows = _rows(draw)
    for row in rows:
        chosen = torch.rand(10) < 0.3
        row["labels"] = row["input_ids"].masked_fill(~chosen, -100)
        row["input_ids"] = row["input_ids"].masked_fill(chosen, 1)
    _trainer(draw, model, rows)


def trainer_sequence_to_sequence(draw: Draw) -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 40}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(decoder_start_token_id=0, **sizes))
    _trainer(draw, model, _rows(draw, padded=True), learning_rate=3e-4)


def trainer_images(draw: Draw) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.ViTForImageClassification(
        transformers.ViTConfig(image_size=8, patch_size=4, num_labels=3, **sizes)
    )
    rows = [{"pixel_values": torch.randn(3, 8, 8), "labels": draw.random.randrange(3)} for _ in range(_ROWS)]
    _trainer(draw, model, rows)


def trainer_experts(draw: Draw) -> None:
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "vocab_size": 40,
    }
    options = {"num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 1, "output_router_logits": True}
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(**sizes, **options))
    _trainer(draw, model, _rows(draw))


def trainer_frozen_body(draw: Draw) -> None:
    model = _llama(draw)
    model.model.requires_grad_(False)
    _trainer(draw, model, _rows(draw))


def trainer_with_its_own_loss(draw: Draw) -> None:
    rows, model = _rows(draw), _llama(draw)

    class Weighted(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
            labels = inputs.pop("labels")
            output = model(**inputs)
            loss = 2 * F.cross_entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
            return (loss, output) if return_outputs else loss

    guard = CompatGuard(check=False, every=1, window=9, share=1.0)
    draw.guards.append(guard)
    arguments = TrainingArguments(
        output_dir=str(draw.folder), report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, max_steps=12
    )
    Weighted(model, arguments, train_dataset=rows, callbacks=[guard]).train()


def _loop(draw: Draw, model: Any, rows: Any, optimizer: Any = None) -> None:
    optimizer = optimizer or torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    guard = draw.watch(model, optimizer)
    model.train()
    for first, second in zip(rows, rows[1:]):
        batch = {key: torch.stack([first[key], second[key]]) for key in first}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        guard.step(loss)
    model.eval()
    with torch.no_grad():
        model(**batch)


def loop_with_padding(draw: Draw) -> None:
    _loop(draw, _gpt2(draw), _rows(draw, padded=True))


def loop_lora(draw: Draw) -> None:
    from peft import LoraConfig, get_peft_model

    _loop(draw, get_peft_model(_llama(draw), LoraConfig(target_modules="all-linear", r=2)), _rows(draw, masked=True))


def loop_prompt_tuning(draw: Draw) -> None:
    from peft import PromptTuningConfig, get_peft_model

    configuration = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    _loop(draw, get_peft_model(_gpt2(draw), configuration), _rows(draw))


def loop_scaled_activations(draw: Draw) -> None:
    from peft import IA3Config, get_peft_model

    configuration = IA3Config(
        task_type="CAUSAL_LM", target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]
    )
    _loop(draw, get_peft_model(_llama(draw), configuration), _rows(draw))


def loop_from_a_folder(draw: Draw) -> None:
    _llama(draw).save_pretrained(draw.folder)
    _loop(draw, transformers.LlamaForCausalLM.from_pretrained(draw.folder), _rows(draw))


def loop_from_a_folder_with_a_new_head(draw: Draw) -> None:
    _llama(draw, pad_token_id=0).save_pretrained(draw.folder)
    model = transformers.LlamaForSequenceClassification.from_pretrained(draw.folder, num_labels=3)
    rows = [{**row, "labels": torch.tensor(draw.random.randrange(3))} for row in _rows(draw)]
    _loop(draw, model, rows)


def loop_in_another_type(draw: Draw) -> None:
    _llama(draw).save_pretrained(draw.folder)
    _loop(draw, transformers.LlamaForCausalLM.from_pretrained(draw.folder, dtype=torch.bfloat16), _rows(draw))


def loop_with_more_tokens(draw: Draw) -> None:
    _llama(draw).save_pretrained(draw.folder)
    model = transformers.LlamaForCausalLM.from_pretrained(draw.folder)
    model.resize_token_embeddings(48)
    _loop(draw, model, _rows(draw))


def loop_on_a_merged_adapter(draw: Draw) -> None:
    from peft import LoraConfig, get_peft_model

    _llama(draw).save_pretrained(draw.folder)
    model = transformers.LlamaForCausalLM.from_pretrained(draw.folder)
    adapted = get_peft_model(model, LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            parameter.mul_(0.05 if "lora_B" in name else 1.0)
    _loop(draw, adapted.merge_and_unload().requires_grad_(True), _rows(draw))


def loop_trained_further(draw: Draw) -> None:
    """The guard is made after some steps: most weights are no longer those of the file."""
    _llama(draw).save_pretrained(draw.folder)
    model = transformers.LlamaForCausalLM.from_pretrained(draw.folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.002 * torch.randn_like(parameter))
    _loop(draw, model, _rows(draw))


def loop_speech(draw: Draw) -> None:
    sizes = {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
    }
    more = {
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "vocab_size": 40,
        "num_mel_bins": 8,
        "max_source_positions": 10,
    }
    tokens = {
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        "begin_suppress_tokens": None,
    }
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(**sizes, **more, **tokens, dropout=0.1)
    )
    rows = [{"input_features": torch.randn(8, 20), "labels": row["labels"]} for row in _rows(draw, padded=True)]
    _loop(draw, model, rows)


def generation_between_steps(draw: Draw) -> None:
    model = _llama(draw, attention_dropout=0.1, pad_token_id=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    guard = draw.watch(model, optimizer)
    for row in _rows(draw)[:8]:
        model.eval()
        with torch.no_grad():
            tokens = model.generate(row["input_ids"][None, :4], max_new_tokens=4, do_sample=True)
        model.train()
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guard.step(loss)


def accelerate_accumulation(draw: Draw) -> None:
    _accelerate(draw, gradient_accumulation_steps=draw.of(2, 4))


def accelerate_bfloat16(draw: Draw) -> None:
    _accelerate(draw, mixed_precision="bf16")


def _accelerate(draw: Draw, **options: Any) -> None:
    from accelerate import Accelerator

    _reset()
    accelerator = Accelerator(cpu=True, **options)
    model = draw.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(48, 12), torch.randint(0, 4, (48,)))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    guard = draw.watch(model, optimizer)
    for batch, target in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(batch), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        guard.step(loss)
    _reset()


def _reset() -> None:
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for each in (AcceleratorState, GradientState, PartialState):
        each._reset_state()


def lightning_module(draw: Draw) -> None:
    lightning = _lightning()

    from compatcheck.integrations.lightning import CompatGuard as LightningGuard

    class Module(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = draw.mlp(12, 4, nn.Dropout(0.1))

        def training_step(self, batch: Any, index: int) -> Any:
            return F.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    data = torch.utils.data.TensorDataset(torch.randn(48, 12), torch.randint(0, 4, (48,)))
    guard = LightningGuard(check=False, every=1, window=9, report=None)
    draw.guards.append(guard)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        callbacks=[guard],
        accumulate_grad_batches=draw.of(1, 2),
        gradient_clip_val=1.0,
        **quiet,
    )
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    trainer.fit(Module(), loader, loader)


def _lightning() -> Any:
    import lightning.pytorch

    return lightning.pytorch
