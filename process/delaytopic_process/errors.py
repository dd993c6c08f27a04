"""Errors of programs: one tree, each error says whose fault it is and what to do."""

from __future__ import annotations


class ProgramError(Exception):
    """Base of everything that a program raises on purpose. The program prints its text as one line.

    `exit_code` is what the program exits with when the error reaches the top.
    """

    exit_code = 1


class InputError(ProgramError):
    """The caller's arguments or files are wrong; the text names the argument and what is allowed."""

    exit_code = 2


class ExtraMissingError(ProgramError):
    """A Python package that this command needs is not installed; the text has the command that installs it."""
