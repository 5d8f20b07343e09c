"""The commands, one file each, and their shared code; `fltheory.cli` puts them together.

A command's file is named after the command, with underscores, and defines `command`: its parameters
are the arguments and options, its docstring the help. A parameter that names a file is marked with
the command's use of the file (`READ`, `WRITTEN`, `UPDATED`); no file can be both read and written.
Slow imports are made where they are used, so the help appears at once.
"""
