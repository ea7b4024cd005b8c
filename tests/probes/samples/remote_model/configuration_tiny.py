"""A configuration of a model that comes with code of its own, as ChatGLM's does."""

from transformers import PretrainedConfig


class TinyConfig(PretrainedConfig):
    model_type = "tiny_remote"

    def __init__(
        self,
        num_layers=28,
        hidden_size=4096,
        num_attention_heads=32,
        kv_channels=128,
        ffn_hidden_size=13696,
        padded_vocab_size=65024,
        hidden_dropout=0.1,
        **kwargs,
    ):
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.kv_channels = kv_channels
        self.ffn_hidden_size = ffn_hidden_size
        self.padded_vocab_size = padded_vocab_size
        self.hidden_dropout = hidden_dropout
        super().__init__(**kwargs)
