"""Fine-tune a small Qwen on a file of chats."""

import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("model")
model = AutoModelForCausalLM.from_pretrained("model", torch_dtype=torch.bfloat16, attn_implementation="sdpa")


def encode(row):
    ids = tokenizer.apply_chat_template(row["messages"], truncation=True, max_length=2048)
    return {"input_ids": ids, "labels": list(ids)}


rows = load_dataset("json", data_files="chats.jsonl", split="train")
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=8,
    learning_rate=2e-5,
    num_train_epochs=3,
    bf16=True,
    gradient_checkpointing=True,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=rows.map(encode, remove_columns=rows.column_names),
    data_collator=DataCollatorForSeq2Seq(tokenizer),
)
trainer.train()
