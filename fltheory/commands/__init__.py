"""The commands, a file each, and what they share; `fltheory.cli` puts them together.

A command's file has the name of its words, with underscores, and defines `command`: its
parameters are the arguments and options, its docstring the help. What names a file is marked with
what the command does with it (`READ`, `WRITTEN`, `UPDATED`), and is kept from being read and
written at once. Anything heavy is imported where it is used, so that the help is there at once.
"""
