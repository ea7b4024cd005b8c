"""What a Python script or notebook calls, and with which values, read from its syntax tree and never run.

`reader` gives `calls.ScriptCalls`. `_interpreter` follows statements, `_expressions` what they compute, `_invocation`
the functions and classes of the script itself. What is known of other code is in `_library` (functions of Python),
`_methods` (of texts, mappings and lists), `_command_line` (parsers) and `_commands` (what fire, typer or click call).
`_heap` holds the values, and `_state` joins what two branches made of them.
"""
