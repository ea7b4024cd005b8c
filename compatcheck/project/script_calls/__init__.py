"""What a Python script or notebook calls, and with which values, read from its syntax tree and never run.

`reader` gives `calls.ScriptCalls`. `_interpreter` follows statements, `_expressions` what they compute, `_invocation`
the functions and classes of the script itself, `_library` and `_command_line` what known libraries and parsers return;
`_heap` holds the values, and `_state` joins what two branches made of them.
"""
