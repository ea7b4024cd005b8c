"""The pipelines: what a verb does from its input to its report, and the only modules that know the order of stages."""
