"""The commands, one file each, and their shared code; `fltheory.cli` puts them together.

A command's file is named after the command, with underscores, and defines `command`: its
parameters are the arguments and options, its docstring the help. A parameter that names a file is
marked with what the command does with the file (`READ`, `WRITTEN`, `UPDATED`); no file can be read
and written at once. Heavy imports are made where they are used, so the help appears at once.
"""
