"""A model's own files: its folder, the caches of the hubs, weights, tokenizer and code. The door."""

from compatcheck.project.model_files._folder import code_files as code_files
from compatcheck.project.model_files._folder import read as read
from compatcheck.project.model_files._folder import recognises as recognises
