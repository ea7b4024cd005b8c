"""How much of a stranger's input is read, and for how long: every limit by its name, and what happens beyond it.

`docs/reference/limits.md` is made of this file by ``python -m tools.limits_page``. What is refused is one line.
"""

from __future__ import annotations

# Files that you pass or that are in a folder
TEXT_BYTES = 16 << 20
"""Any file of text without a limit of its own: JSON, snapshots, `pyproject.toml`, lock files. Refused."""

HEAD_BYTES = 1 << 16
"""A file that only shows its kind or version. Only its beginning is read."""

REQUIREMENTS_BYTES = 4 << 20
"""A list of requirements. Refused."""

INCLUDES_DEPTH = 10
"""Lists of requirements that include one another. Refused."""

INCLUDED_FILES = 200
"""Files that a list of requirements includes, a file counted as often as it is included. Refused."""

REQUIREMENT_LINES = 20_000
"""Lines of a list of requirements and of those it includes. Refused."""

REQUIREMENT_CHARACTERS = 20_000
"""Characters of a requirement without its options, such as hashes. Refused."""

DOCKERFILE_BYTES = 1 << 20
"""A Dockerfile. Refused."""

JSON_DEPTH = 100
"""Nesting of a file in JSON. Refused."""

YAML_DEPTH = 60
"""Nesting of a lock file in YAML. Refused."""

STATED_DEPTH = 60
"""Nesting of a value passed with --assume. Refused."""

YAML_ALIASED_VALUES = 20_000
"""Values of a lock file in YAML that aliases repeat. Refused."""

CONFIGURATION_BYTES = 4 << 20
"""A training configuration. Refused."""

CONFIGURATION_VALUES = 50_000
"""Values of a training configuration, aliases counted as often as they are used. Refused."""

SCRIPT_BYTES = 1 << 20
"""A Python script. Refused if it is passed; otherwise not read, with the reason."""

ASKS = 5000
"""Different imports, attributes and calls of a script. Later ones are not compared with releases; a line says so."""

ASKED_KEYWORDS = 300
"""Keyword arguments of a call that is compared with releases. A call with more is not compared."""

NOTEBOOK_BYTES = 64 << 20
"""A notebook. Treated like a script."""

MET_BYTES = 1 << 20
"""A configuration in a folder that was not passed. Skipped."""

MET_CODE_BYTES = 64 << 20
"""Code in a folder that was not passed. Skipped."""

FOLDER_ENTRIES = 5000
"""Files and folders of a project folder. Refused."""

FOLDER_DEPTH = 2
"""Levels below a project folder, and below each folder in it that lists packages. Deeper folders are skipped."""

BASELINE_BYTES = 64 << 20
"""A baseline. Refused."""


# Following scripts and configurations
NUMBER = 10**18
"""A number in a configuration or script. A larger one is unknown, with the reason."""

EXPONENT = 64
"""An exponent that a script computes. The result is unknown."""

VALUE_LENGTH = 10_000
"""Characters or members of a value that a script computes. The result is unknown."""

CALLS_DEPTH = 12
"""Calls within calls that are followed in a script. Deeper calls are unknown."""

SCRIPT_STEPS = 300_000
"""Steps in which a script is followed. Later steps are unknown."""

SCRIPT_ROUNDS = 64
"""Rounds of a loop that are followed. Values that the loop changes are unknown."""

ARGUMENTS_DEPTH = 20
"""Values within the arguments of a call. Deeper values are unknown."""

PYTHON_FILES = 50
"""Files that a configuration in Python builds on. Refused."""

PYTHON_VALUES = 50_000
"""Values of a configuration in Python. Refused."""

PYTHON_DEPTH = 60
"""Nesting of a configuration in Python. Refused."""

PYTHON_COPIES = 1_000_000
"""Values that a configuration in Python copies while it is followed. Refused."""

INTERPOLATED_CHARACTERS = 4096
"""A value with placeholders. Left as it is."""

INTERPOLATED_DEPTH = 16
"""Placeholders for placeholders. The value is unknown."""

SHELL_WORD_CHARACTERS = 1 << 14
"""A word of a shell script, its variables filled in. The value is unknown."""

SHELL_WORDS = 50_000
"""Words of a shell script. Refused."""

PROGRAMS = 200
"""Scripts of trainings in one folder that are read. With more of them, none is used."""

RUNS = 12
"""Trainings in one folder that are compared. With more trainings, none of them is used."""


# Models
HEADER_BYTES = 100 << 20
"""The header of a safetensors file, the limit of safetensors itself. The file is reported as damaged."""

HEADER_VALUES = 4_000_000
"""Commas, colons and opening brackets in such a header. The file is reported as damaged."""

EMBEDDING_ROW_BYTES = 1 << 20
"""A row of the embedding, which `data` compares with others. The rows are not compared."""

ZIP_LISTING_BYTES = 64 << 20
"""The listing of a zip of weights. The file is reported as damaged."""

GGUF_PAIRS = 64
"""Pairs in the header of a GGUF file. Later ones are not read."""

GGUF_TEXT_BYTES = 1 << 16
"""A text in the header of a GGUF file. The file is reported as damaged."""

MODEL_CODE_BYTES = 8 << 20
"""A file of a model's own code. Refused."""

MODEL_FILES = 2000
"""Files of a model folder. Refused. An index of weights that names more is reported as damaged."""

HASHED_BYTES = 256 << 20
"""A file that is hashed without `--hash-weights`. Not hashed, with the reason."""

TOKENIZER_BYTES = 128 << 20
"""`tokenizer.json`. Refused."""

REF_BYTES = 200
"""A ref (branch or tag) in a Hugging Face cache. Only its beginning is read."""

REFS = 500
"""Refs of a model in a Hugging Face cache. Others are not read."""

DOWNLOAD_BYTES = 1 << 30
"""A model's small files together, for `model --online`. Refused."""

DOWNLOAD_SECONDS = 600.0
"""How long `model --online` may take. Given up."""

REMEMBERED_HASHES = 10_000
"""Hashes of files that the cache keeps. The oldest are dropped."""


# Installed environments
METADATA_BYTES = 4 << 20
"""The header of a distribution's metadata. Only its beginning is read."""

RECORD_BYTES = 16 << 20
"""The list of a distribution's files. Not read."""

PTH_BYTES = 1 << 20
"""A `.pth` or `.egg-link`. Only its beginning is read."""

PTH_FOLDERS = 500
"""Folders that `.pth` files add. Others are not searched."""

DISTRIBUTION_REQUIREMENTS = 5000
"""Requirements that a distribution declares. Others are not read."""

EGG_REQUIREMENTS_BYTES = 1 << 20
"""`requires.txt` of an egg. Only its beginning is read."""

MODULE_BYTES = 2 << 20
"""A module of a release that the tables lack. The module counts as unread."""

MODULES_BYTES = 24 << 20
"""All modules of such a release. The rest counts as unread."""

TOOLKIT_BYTES = 64 << 10
"""A file that states CUDA's release. Only its beginning is read."""

LIBRARY_SECTIONS = 4096
"""Sections of torch's library. Its architectures are unknown."""

ANSWER_BYTES = 1 << 20
"""The answer of an interpreter to the question for its folders. The interpreter is ended, exit status 3."""

ANSWER_SECONDS = 20.0
"""The time for that answer. The interpreter and all that it started are ended, exit status 3."""

IMPORTED_BYTES = 8 << 20
"""A file of Python, stubs or records that `--imports` follows. The file counts as unknown."""

IMPORTS_SECONDS = 900.0
"""How long `--imports` follows imports. The search ends with an error."""

IMPORTS_STEPS = 20_000
"""Steps of one module that `--imports` follows. The rest is unknown."""

IMPORTS_ROUNDS = 3000
"""Rounds of a loop that `--imports` follows. Values that the loop changes are unknown."""

IMPORTS_FRAMES = 60_000
"""Frames of the process that follows imports, in a stack of 256 MiB. The module counts as unread."""

IMPORTS_CALLS_DEPTH = 25
"""Calls within calls that `--imports` follows. The result is unknown."""

IMPORTS_VALUE_LENGTH = 5000
"""Members of a value that `--imports` computes. The result is unknown."""


# Reports and logs
REPORT_BYTES = 8 << 20
"""A pasted report. Only both ends are read, with a remark."""

REPORT_FILE_BYTES = 1 << 20
"""A file that is read as a report. A larger one is read as a log."""

UNNAMED_LIST_BYTES = 1 << 16
"""A file of requirements with another name. It is read as a report."""

ISSUE_DEPTH = 6
"""Nesting of GitHub's JSON of issues and comments. Deeper ones are not read."""

REPORT_LINE_CHARACTERS = 20_000
"""A line of a report. The rest of it is not read."""

CLAUSE_CHARACTERS = 2_000
"""A clause of a report's prose. The rest of it is not read."""

LINE_CLAUSES = 200
"""Clauses of a line. Others are not read."""

PASTED_BLOCKS = 60
"""Settings pasted into a report. Others are not read."""

PASTED_LINES = 3_000
"""Lines of settings that are pasted. Later ones are not read."""

GPUS = 1024
"""GPUs that a line states. Higher numbers are ignored."""

PROSE_CHARACTERS = 200_000
"""Text that may be written by a person. The rest counts as program output."""

LONGEST_LOG_LINE_BYTES = 256 << 20
"""A line of a log, with all that overwrote itself in it. Refused."""

EVENT_BYTES = 1 << 16
"""A record of a TensorBoard event file. A larger one, such as an image, is skipped."""

LOG_LINE_BYTES = 1 << 16
"""A line of a log. A longer one is read in pieces."""

OVERWRITTEN_PIECES = 100_000
"""Pieces of a log that overwrite one another, as progress bars do. Of the rest, each 64 KiB counts with its end."""

LAST_PIECES = 100
"""Pieces at that end. Earlier ones are not read, unless an error is among them."""

MATCHED_CHARACTERS = 4_000
"""A line that is compared with error patterns. Only its beginning is read."""

PATTERN_WAYS = 20_000
"""Ways in which a pattern can match a line, which bounds the time of a comparison. `matrix lint` rejects others."""

OBJECT_CHARACTERS = 1 << 16
"""A reading in JSON that goes over several lines. It is not read."""

LOG_CRASHES = 24
"""Exceptions of a log that are kept. Further exceptions are only counted."""

LOG_RUNS = 50
"""Runs of a log that are kept. The earliest are dropped."""

OPEN_TRACEBACKS = 64
"""Open tracebacks in a log, such as those of several ranks. The oldest is closed."""

CURVE_POINTS = 600
"""Points of a curve that are kept. Points in between are dropped."""


# Training data
ROW_BYTES = 16 << 20
"""A row of a file of conversations. It is reported as broken."""

ROW_HASHES = 2_000_000
"""Rows that are compared for repeats. Later rows are not compared."""

SAMPLED_CHARACTERS = 1 << 18
"""A row that is drawn for the tokenizer. Larger rows are not drawn."""


# Updates, clusters, caches
ARCHIVE_FILES = 2000
"""Files of a matrix archive. Refused."""

ARCHIVE_BYTES = 256 << 20
"""A matrix archive, unpacked. Refused."""

FETCHED_BYTES = 64 << 20
"""A file of a matrix repository. Refused."""

ROOT_BYTES = 1 << 20
"""A root file. Refused."""

SILENCE_SECONDS = 20.0
"""Silence of a server. Given up."""

FETCH_SECONDS = 300.0
"""How long a file of a matrix repository may take. Given up."""

MESSAGE_BYTES = 64 << 20
"""A message of a rank in `cluster`. The rank counts as lost."""

HELLO_BYTES = 1 << 16
"""What a connection to rank 0 sends before it names its rank. The connection is closed."""

RANKS = 1 << 24
"""The number of a rank. A message with a larger one is invalid, and the rank counts as lost."""

NODE_CHARACTERS = 255
"""The name of a node, the limit of host names. Longer names are cut."""

WORDS_CHARACTERS = 1 << 14
"""A text in such a message, such as the name of a node. The message is invalid."""

EVENTS_BYTES = 64 << 20
"""Output of the process of a probe. The rest is not read, and the probe has no result."""

NOTE_BYTES = 8 << 20
"""A result in the cache. A larger one is not read."""

HASHES_BYTES = 64 << 20
"""The cache of hashes. A larger one is not read."""


# Output
WORD_CHARACTERS = 300
"""A word of an error line. Shortened, with its length."""

TAIL_BYTES = 4096
"""The last output of a child process. Only its end is kept."""

SIZE_SECONDS = 10.0
"""How long an index may take to state the size of a wheel. The size counts as nothing."""

UV_LINES = 400
"""Lines of uv that are kept. Only the last lines are kept."""

UV_CHARACTERS = 500
"""Output of uv in an error line. Shortened."""
