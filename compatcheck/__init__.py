"""compatcheck: which parts of a language-model training environment do not work together."""

__version__ = "0.1.0"
