"""A small causal model whose attention knows no rotary embedding and whose loss is its own."""

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from .configuration_tiny import TinyConfig


class TinyBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.num_attention_heads * config.kv_channels
        self.heads = config.num_attention_heads
        self.norm = nn.LayerNorm(config.hidden_size)
        self.query_key_value = nn.Linear(config.hidden_size, 3 * width)
        self.dense = nn.Linear(width, config.hidden_size)
        self.up = nn.Linear(config.hidden_size, config.ffn_hidden_size)
        self.down = nn.Linear(config.ffn_hidden_size, config.hidden_size)

    def forward(self, hidden, mask):
        batch, length, _ = hidden.shape
        mixed = self.query_key_value(self.norm(hidden)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = mixed[0] @ mixed[1].transpose(-1, -2) / mixed.shape[-1] ** 0.5 + mask
        context = torch.softmax(scores, -1) @ mixed[2]
        hidden = hidden + self.dense(context.transpose(1, 2).reshape(batch, length, -1))
        return hidden + self.down(nn.functional.gelu(self.up(self.norm(hidden))))


class TinyForCausalLM(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([TinyBlock(config) for _ in range(config.num_layers)])
        self.output_layer = nn.Linear(config.hidden_size, config.padded_vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(0.0, 0.02)

    def get_input_embeddings(self):
        return self.embedding

    def get_output_embeddings(self):
        return self.output_layer

    def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
        hidden = self.embedding(input_ids)
        length = input_ids.shape[1]
        allowed = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()[None, None]
        if attention_mask is not None:
            allowed = allowed & attention_mask[:, None, None].bool()
        mask = torch.zeros(allowed.shape, dtype=hidden.dtype, device=hidden.device)
        mask = mask.masked_fill(~allowed, torch.finfo(hidden.dtype).min)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        logits = self.output_layer(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].float().reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1)
            )
        return CausalLMOutput(loss=loss, logits=logits)
